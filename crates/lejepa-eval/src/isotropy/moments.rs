//! Bias and variance of predictions over draws of training samples.
//!
//! ```text
//! squared bias   (mean over draws of f_D(x) - y)^2       with y as given: the noise of targets counts as bias
//! variance       mean over draws of (f_D(x) - mean f)^2
//! squared error  mean over draws of (f_D(x) - y)^2       = squared bias + variance
//! ```
//!
//! A mean over `D` draws is itself uncertain, which adds `variance / (D - 1)` to the squared bias; the
//! corrected squared bias is free of that on average, and may be slightly negative.

use ndarray::{Array2, Axis, Zip};

/// Sums over draws, after Welford.
pub(crate) struct Moments {
    draws: usize,
    /// `(points, outputs)`
    targets: Array2<f64>,
    mean: Array2<f64>,
    spread: Array2<f64>,
    errors: Array2<f64>,
}

/// Means over outputs at every point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PointMoments {
    pub(crate) squared_bias: Vec<f64>,
    pub(crate) corrected_squared_bias: Vec<f64>,
    pub(crate) variance: Vec<f64>,
    pub(crate) squared_error: Vec<f64>,
}

impl Moments {
    /// Nothing drawn yet; `targets` is `(points, outputs)`.
    pub(crate) fn new(targets: Array2<f64>) -> Self {
        let zeros = Array2::zeros(targets.dim());
        Self { draws: 0, mean: zeros.clone(), spread: zeros.clone(), errors: zeros, targets }
    }

    /// One draw's predictions `(points, outputs)`.
    pub(crate) fn add(&mut self, predictions: &Array2<f64>) {
        self.draws += 1;
        let share = 1. / self.draws as f64;
        Zip::from(&mut self.mean).and(&mut self.spread).and(predictions).for_each(|mean, spread, &value| {
            let before = value - *mean;
            *mean += before * share;
            *spread += before * (value - *mean);
        });
        Zip::from(&mut self.errors)
            .and(predictions)
            .and(&self.targets)
            .for_each(|sum, &value, &target| *sum += (value - target).powi(2));
    }

    /// What the draws so far amount to; `variance / (D - 1)` is taken as 0 for a single draw.
    pub(crate) fn points(&self) -> PointMoments {
        let draws = self.draws.max(1) as f64;
        let mean =
            |values: Array2<f64>| values.mean_axis(Axis(1)).map_or_else(Vec::new, |mean| mean.to_vec());
        let squared_bias = mean((&self.mean - &self.targets).mapv(|bias| bias * bias));
        let variance = mean(&self.spread / draws);
        let uncertain = 1. / (draws - 1.).max(1.);
        let corrected = |(bias, variance): (&f64, &f64)| bias - variance * uncertain;
        PointMoments {
            corrected_squared_bias: squared_bias.iter().zip(&variance).map(corrected).collect(),
            squared_error: mean(&self.errors / draws),
            squared_bias,
            variance,
        }
    }
}

/// The mean; 0 of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The standard error of the mean; 0 of fewer than two values.
pub(crate) fn standard_error(values: &[f64]) -> f64 {
    let (mean, count) = (mean(values), values.len() as f64);
    if count < 2. {
        return 0.;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.) / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isotropy::random::{Stream, normal, stream};

    /// Rounding of means of fifty numbers around 1e3.
    const ROUNDING: f64 = 1e-6;

    #[test]
    fn the_squared_error_is_squared_bias_plus_variance() {
        let mut generator = stream(3, Stream::Queries, 0);
        let mut moments = Moments::new(normal((20, 4), &mut generator));
        (0..50).for_each(|_| moments.add(&(normal((20, 4), &mut generator) + 1e3)));
        let points = moments.points();
        for point in 0..20 {
            let sum = points.squared_bias[point] + points.variance[point];
            assert!((points.squared_error[point] - sum).abs() < ROUNDING * sum);
            assert!((points.variance[point] - 1.).abs() < 0.5);
        }
    }

    #[test]
    fn the_correction_takes_away_what_few_draws_add() {
        let mut generator = stream(4, Stream::Queries, 0);
        let mut moments = Moments::new(Array2::zeros((4000, 1)));
        (0..4).for_each(|_| moments.add(&normal((4000, 1), &mut generator)));
        let points = moments.points();
        assert!((mean(&points.squared_bias) - 0.25).abs() < 0.05);
        let error = standard_error(&points.corrected_squared_bias);
        assert!(mean(&points.corrected_squared_bias).abs() < 4. * error);
    }
}
