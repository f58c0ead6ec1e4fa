//! The statistics of one slice: against PyTorch, against differences of their own values, against
//! simulations of their floors, inside Candle's graph and on degenerate slices.

#![allow(clippy::unwrap_used)]

mod degenerate;
mod differences;
mod floors;
mod golden;
mod graph;

use std::sync::Arc;

use lejepa_loss::{
    AndersonDarling, Covariance, CramerVonMises, ExtendedJarqueBera, JarqueBera, Moments, OrderStatistics,
    ShapiroWilk, Statistic, VicregLimit, Watson,
};

/// Every statistic but Epps-Pulley, by its name in `statistics.safetensors`.
fn statistics() -> Vec<(&'static str, Arc<dyn Statistic>)> {
    use Covariance::{Asymptotic, Identity};
    use OrderStatistics::{Blom, Elfving, WeisbergBingham};
    let shapiro_wilk = |order_statistics, covariance| Arc::new(ShapiroWilk { order_statistics, covariance });
    vec![
        ("cramer-von-mises", Arc::new(CramerVonMises)),
        ("watson", Arc::new(Watson)),
        ("anderson-darling", Arc::new(AndersonDarling)),
        ("jarque-bera", Arc::new(JarqueBera)),
        ("extended-jarque-bera", Arc::new(ExtendedJarqueBera)),
        ("vicreg-limit", Arc::new(VicregLimit)),
        ("moments-1", Arc::new(Moments::new(1).unwrap())),
        ("moments-6", Arc::new(Moments::new(6).unwrap())),
        ("moments-weighted", Arc::new(Moments::weighted(vec![1., 0.5, 0.25, 2.]).unwrap())),
        ("shapiro-wilk-weisberg-bingham-identity", shapiro_wilk(WeisbergBingham, Identity)),
        ("shapiro-wilk-weisberg-bingham-asymptotic", shapiro_wilk(WeisbergBingham, Asymptotic)),
        ("shapiro-wilk-elfving-identity", shapiro_wilk(Elfving, Identity)),
        ("shapiro-wilk-elfving-asymptotic", shapiro_wilk(Elfving, Asymptotic)),
        ("shapiro-wilk-blom-identity", shapiro_wilk(Blom, Identity)),
        ("shapiro-wilk-blom-asymptotic", shapiro_wilk(Blom, Asymptotic)),
    ]
}

fn gradient(statistic: &dyn Statistic, samples: &[f64]) -> Vec<f64> {
    let mut gradient = vec![f64::NAN; samples.len()];
    statistic.gradient(samples, &mut gradient);
    gradient
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0., |largest, value| value.abs().max(largest))
}
