//! The Anderson-Darling statistic against the standard normal (paper, section 4.2.2).
//!
//! ```text
//! T = N integral (F_N(x) - F(x))^2 / (F(x) (1 - F(x))) dF(x)
//!   = -N - sum_i (2 i - 1) / N (log F(x_{i:N}) + log(1 - F(x_{N+1-i:N})))
//! ```
//!
//! The logarithms are those of [`normal::log_cdf`], so that samples far out count with their square
//! and have a gradient.

use super::Statistic;
use super::ascending::{ascending, middles};
use crate::normal;

/// The Anderson-Darling statistic: the distribution function, its tails above all.
#[derive(Debug, Clone, Copy, Default)]
pub struct AndersonDarling;

impl Statistic for AndersonDarling {
    fn name(&self) -> &'static str {
        "anderson-darling"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        // 1 - F(x) = F(-x), and the rank from above has the middle 1 - middle.
        let terms = ascending(samples).into_iter().zip(middles(samples.len())).map(|(at, middle)| {
            middle * normal::log_cdf(at.sample) + (1. - middle) * normal::log_cdf(-at.sample)
        });
        -2. * terms.sum::<f64>() - samples.len() as f64
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        for (at, middle) in ascending(samples).into_iter().zip(middles(samples.len())) {
            let below = middle * normal::log_cdf_slope(at.sample);
            let above = (1. - middle) * normal::log_cdf_slope(-at.sample);
            gradient[at.index] = 2. * (above - below);
        }
    }

    /// The same for any number of samples.
    fn floor(&self, _samples: usize) -> Option<f64> {
        Some(1.)
    }
}
