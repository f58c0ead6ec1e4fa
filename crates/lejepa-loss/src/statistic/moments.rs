//! The first `K` raw moments against those of the standard normal (paper, section 4.2.1, theorem on
//! the insufficiency of K moments).
//!
//! ```text
//! T = sum_{k = 1..K} c_k (m_k - mu_k)^2,   m_k = mean_n x_n^k,   mu_k = (k - 1)!! for even k, else 0
//! ```
//!
//! `c_k` is `1 / k!` unless given: under the normal the variance of `m_k` grows like `(2k - 1)!!`, so
//! that without weights the last moment would be all that counts. The gradient is a polynomial in the
//! sample and has no bound.

use super::Statistic;
use crate::{Error, Result};

/// The most moments: with them the squares of the moments of samples up to 1e4 are still finite.
const MOST: usize = 32;

/// The first raw moments against those of the standard normal.
#[derive(Debug, Clone)]
pub struct Moments {
    weights: Vec<f64>,
}

impl Moments {
    /// The moments `1..=up_to`, at most 32, each weighted with `1 / k!`.
    pub fn new(up_to: usize) -> Result<Self> {
        if !(1..=MOST).contains(&up_to) {
            return Err(Error::Setting { field: "up_to", expected: "from 1 to 32", got: up_to.to_string() });
        }
        let factorials = (1..=up_to).scan(1., |factorial, k| {
            *factorial *= k as f64;
            Some(*factorial)
        });
        Ok(Self { weights: factorials.map(|factorial| 1. / factorial).collect() })
    }

    /// The moments `1..=weights.len()`, at most 32, with these weights.
    pub fn weighted(weights: Vec<f64>) -> Result<Self> {
        if !(1..=MOST).contains(&weights.len()) {
            let got = weights.len().to_string();
            return Err(Error::Setting { field: "weights", expected: "from 1 to 32 numbers", got });
        }
        if let Some(weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.)) {
            return Err(Error::Setting {
                field: "weights",
                expected: "positive numbers",
                got: weight.to_string(),
            });
        }
        Ok(Self { weights })
    }

    /// `m_k - mu_k` for every `k`.
    fn deviations(&self, samples: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.; self.weights.len()];
        for sample in samples {
            let mut power = 1.;
            for sum in &mut sums {
                power *= sample;
                *sum += power;
            }
        }
        let count = samples.len() as f64;
        (1..).zip(sums).map(|(k, sum)| sum / count - normal_moment(k)).collect()
    }
}

/// `E x^k` for a standard normal `x`.
fn normal_moment(k: usize) -> f64 {
    if k.is_multiple_of(2) { (1..k).step_by(2).map(|odd| odd as f64).product() } else { 0. }
}

impl Statistic for Moments {
    fn name(&self) -> &'static str {
        "moments"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        let deviations = self.deviations(samples);
        self.weights.iter().zip(deviations).map(|(weight, deviation)| weight * deviation * deviation).sum()
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        let mut factors = self.deviations(samples);
        for ((k, weight), factor) in (1..).zip(&self.weights).zip(&mut factors) {
            *factor *= 2. * weight * f64::from(k) / samples.len() as f64;
        }
        for (gradient, sample) in gradient.iter_mut().zip(samples) {
            *gradient = factors.iter().rev().fold(0., |sum, factor| sum * sample + factor);
        }
    }

    /// The weighted variances of the moments.
    fn floor(&self, samples: usize) -> Option<f64> {
        let variance = |k: usize| normal_moment(2 * k) - normal_moment(k).powi(2);
        let sum: f64 = (1..).zip(&self.weights).map(|(k, weight)| weight * variance(k)).sum();
        (samples >= self.least_samples()).then(|| sum / samples as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moments_of_the_normal_are_double_factorials() {
        assert_eq!([1, 2, 3, 4, 6, 8].map(normal_moment), [0., 1., 0., 3., 15., 105.]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        assert!(Moments::new(0).is_err() && Moments::new(MOST + 1).is_err() && Moments::new(MOST).is_ok());
        for weights in [vec![], vec![1.; MOST + 1], vec![1., 0.], vec![-1.], vec![f64::NAN]] {
            assert!(Moments::weighted(weights).is_err());
        }
    }

    #[test]
    fn the_most_moments_of_a_sample_of_ten_thousand_are_finite() {
        let moments = Moments::weighted(vec![1.; MOST]).unwrap();
        let mut gradient = [0.];
        moments.gradient(&[1e4], &mut gradient);
        assert!(moments.value(&[1e4]).is_finite() && gradient[0].is_finite());
    }
}
