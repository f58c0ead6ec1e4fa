//! The Cramér-von Mises statistic against the standard normal (paper, section 4.2.2).
//!
//! ```text
//! T = N integral (F_N(x) - F(x))^2 dF(x) = 1 / (12 N) + sum_i ((2 i - 1) / (2 N) - F(x_{i:N}))^2
//! ```

use super::Statistic;
use super::ascending::{ascending, middles};
use crate::normal;

/// The Cramér-von Mises statistic: the distribution function, all parts alike.
#[derive(Debug, Clone, Copy, Default)]
pub struct CramerVonMises;

impl Statistic for CramerVonMises {
    fn name(&self) -> &'static str {
        "cramer-von-mises"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        let ranked = ascending(samples);
        let squares = ranked
            .iter()
            .zip(middles(samples.len()))
            .map(|(at, middle)| (middle - normal::cdf(at.sample)).powi(2));
        squares.sum::<f64>() + 1. / (12. * samples.len() as f64)
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        for (at, middle) in ascending(samples).iter().zip(middles(samples.len())) {
            gradient[at.index] = 2. * (normal::cdf(at.sample) - middle) * normal::density(at.sample);
        }
    }

    /// The same for any number of samples.
    fn floor(&self, _samples: usize) -> Option<f64> {
        Some(1. / 6.)
    }
}
