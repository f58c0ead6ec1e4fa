//! The statistic that makes VICReg of LeJEPA when there are many slices (paper, section 5).
//!
//! ```text
//! T = mean^2 + (s - 1)^2
//! ```
//!
//! with the unbiased standard deviation `s`. Where `s` is 0 it has no derivative; equal samples are
//! told apart by nothing, so there only the mean counts for the gradient.

use super::Statistic;
use super::centred::Centred;

/// Mean and standard deviation against 0 and 1, blind to everything else.
#[derive(Debug, Clone, Copy, Default)]
pub struct VicregLimit;

impl Statistic for VicregLimit {
    fn name(&self) -> &'static str {
        "vicreg-limit"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        let centred = Centred::new(samples);
        centred.mean.powi(2) + (centred.variance().sqrt() - 1.).powi(2)
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        let centred = Centred::new(samples);
        let count = samples.len() as f64;
        let by_mean = 2. * centred.mean / count;
        let by_deviation = match centred.variance().sqrt() {
            0. => 0.,
            deviation => 2. * (1. - 1. / deviation) / (count - 1.),
        };
        for (gradient, deviation) in gradient.iter_mut().zip(&centred.deviations) {
            *gradient = by_mean + by_deviation * deviation;
        }
    }

    /// `1 / N + 2 (1 - E s)`.
    fn floor(&self, samples: usize) -> Option<f64> {
        let deviation = expected_deviation(samples)?;
        Some(1. / samples as f64 + 2. * (1. - deviation))
    }

    fn least_samples(&self) -> usize {
        2
    }
}

/// `E s` for standard normal samples, known as `c4`.
fn expected_deviation(samples: usize) -> Option<f64> {
    // c4(n + 1) c4(n) = sqrt(1 - 1/n). The closed form is a ratio of gamma functions, whose
    // logarithms leave few digits of the small `1 - c4`.
    let two = std::f64::consts::FRAC_2_PI.sqrt();
    let next = |previous: f64, n: usize| (1. - 1. / n as f64).sqrt() / previous;
    (samples >= 2).then(|| (2..samples).fold(two, next))
}

#[cfg(test)]
mod tests {
    use statrs::function::gamma::gamma;

    use super::*;

    /// Of the gamma function of `statrs`.
    const TOLERANCE: f64 = 1e-12;

    #[test]
    fn the_expected_deviation_is_the_ratio_of_gamma_functions() {
        for samples in 2..100 {
            let n = samples as f64;
            let exact = (2. / (n - 1.)).sqrt() * gamma(n / 2.) / gamma((n - 1.) / 2.);
            let got = expected_deviation(samples).unwrap();
            assert!((got - exact).abs() < TOLERANCE, "{samples}: {got} against {exact}");
        }
        assert_eq!(expected_deviation(1), None);
    }

    #[test]
    fn equal_samples_are_pulled_to_zero_together() {
        let mut gradient = [f64::NAN; 3];
        VicregLimit.gradient(&[0.1; 3], &mut gradient);
        assert_eq!(gradient, [2. * 0.1 / 3.; 3]);
        assert!((VicregLimit.value(&[0.1; 3]) - 1.01).abs() < TOLERANCE);
    }
}
