//! What a perfect Gaussian sample would score: the null distribution of the statistic.
//!
//! Its first three cumulants are known (see `cumulants.rs`); a gamma law that is shifted and scaled
//! to them (Pearson's type III) has its quantiles and tails.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Gamma, Normal};

use super::Reference;
use super::cumulants::Cumulants;
use super::quadrature::Quadrature;
use crate::Result;

/// What decides a null distribution.
#[derive(Debug, Clone, Copy)]
pub struct Design {
    /// Number of samples.
    pub samples: usize,
    /// Dimensions of a sample.
    pub dim: usize,
    /// Random directions that the statistic is averaged over.
    pub slices: usize,
    /// What samples are compared with.
    pub reference: Reference,
}

/// The law of the mean statistic over random slices of a perfect Gaussian sample.
///
/// The mean and, for [`Reference::Standard`], the standard deviation are exact for every number of
/// samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Null {
    /// Expected value: the floor.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Skewness.
    pub skewness: f64,
}

/// Below this skewness the normal law is as good, and the gamma function far out of its range.
const SYMMETRIC: f64 = 1e-3;

impl Null {
    /// The law for the statistic [`EppsPulley`](crate::EppsPulley) with these settings.
    pub fn new(t_max: f64, knots: usize, design: Design) -> Result<Self> {
        Ok(Self::of(&Quadrature::new(t_max, knots)?, design))
    }

    pub(super) fn of(rule: &Quadrature, design: Design) -> Self {
        let Cumulants { mean, variance, third } = Cumulants::of(rule, design);
        let deviation = variance.sqrt();
        Self { mean, deviation, skewness: third / (variance * deviation) }
    }

    /// The value below which a share of perfect Gaussian samples lies; `level` is inside (0, 1).
    pub fn quantile(&self, level: f64) -> f64 {
        let level = level.clamp(f64::MIN_POSITIVE, 1. - f64::EPSILON);
        let standardised = match self.gamma() {
            Some((gamma, shape)) => (gamma.inverse_cdf(level) - shape) / shape.sqrt(),
            None => Normal::standard().inverse_cdf(level),
        };
        self.mean + self.deviation * standardised
    }

    /// The share of perfect Gaussian samples that score `value` or more.
    pub fn p_value(&self, value: f64) -> f64 {
        let standardised = (value - self.mean) / self.deviation;
        match self.gamma() {
            Some((gamma, shape)) => gamma.sf(shape + standardised * shape.sqrt()),
            None => Normal::standard().sf(standardised),
        }
    }

    fn gamma(&self) -> Option<(Gamma, f64)> {
        let shape = 4. / (self.skewness * self.skewness);
        let gamma = Gamma::new(shape, 1.).ok()?;
        (self.skewness > SYMMETRIC).then_some((gamma, shape))
    }
}
