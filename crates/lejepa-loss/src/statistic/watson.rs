//! Watson's statistic against the standard normal (paper, section 4.2.2).
//!
//! ```text
//! U^2 = T - N (mean_n F(x_n) - 1/2)^2,   T of Cramér and von Mises
//! ```

use super::{CramerVonMises, Statistic};
use crate::normal;

/// Watson's statistic: that of Cramér and von Mises, less what a shift of all ranks contributes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watson;

/// `mean_n F(x_n) - 1/2`.
fn shift(samples: &[f64]) -> f64 {
    samples.iter().map(|&sample| normal::cdf(sample)).sum::<f64>() / samples.len() as f64 - 0.5
}

impl Statistic for Watson {
    fn name(&self) -> &'static str {
        "watson"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        CramerVonMises.value(samples) - samples.len() as f64 * shift(samples).powi(2)
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        CramerVonMises.gradient(samples, gradient);
        let shift = shift(samples);
        for (gradient, &sample) in gradient.iter_mut().zip(samples) {
            *gradient -= 2. * shift * normal::density(sample);
        }
    }

    /// The same for any number of samples.
    fn floor(&self, _samples: usize) -> Option<f64> {
        Some(1. / 12.)
    }
}
