//! What a gauge says about embeddings.

use serde::{Deserialize, Serialize};

use super::null::Null;
use super::slices::{Histogram, Slice};
use super::spectrum::Spectrum;
use super::verdict::Verdict;

/// What embeddings are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// The standard normal `N(0, I)`, which the projector's output is trained to be.
    Standard,
    /// Any isotropic Gaussian: embeddings are centred and divided by one number, their overall root
    /// mean square. For features of an encoder, whose scale was never meant to be 1.
    Shape,
}

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    /// The conclusion.
    pub verdict: Verdict,
    /// The conclusion in one sentence.
    pub explanation: String,
    /// What the embeddings were compared with.
    pub reference: Reference,
    /// Number of samples.
    pub samples: usize,
    /// Dimensions of a sample.
    pub dim: usize,
    /// Root mean square of all values around the mean of their dimension.
    pub scale: f64,
    /// Root mean square of the dimensions' means.
    pub offset: f64,
    /// The sliced Epps-Pulley statistic.
    pub sigreg: SigregReading,
    /// Variances along principal directions and dimensions.
    pub spectrum: Spectrum,
    /// The random slices with the largest statistics.
    pub worst_slices: Vec<Slice>,
    /// The measurable principal directions whose variance is furthest, as a ratio, from what it
    /// should be.
    pub worst_principal_directions: Vec<Slice>,
    /// The dimensions with the largest statistics.
    pub worst_dimensions: Vec<Slice>,
    /// The samples along the worst random slice.
    pub worst_slice_histogram: Histogram,
}

/// The sliced Epps-Pulley statistic against its null distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SigregReading {
    /// Number of random directions.
    pub slices: usize,
    /// What drew them.
    pub seed: u64,
    /// Where the quadrature ends.
    pub t_max: f64,
    /// Quadrature points over `[-t_max, t_max]`.
    pub knots: usize,
    /// The mean statistic over all slices.
    pub mean: f64,
    /// What a perfect Gaussian sample of this size scores on average.
    pub floor: f64,
    /// `mean / floor`
    pub ratio: f64,
    /// The law of `mean` for perfect Gaussian samples of this size.
    pub null: Null,
    /// Quantiles of that law.
    pub quantiles: Quantiles,
    /// The share of perfect Gaussian samples with such a mean or a larger one.
    pub p_value: f64,
    /// The distance to the reference, whatever the number of samples: 0 for a Gaussian, 1 for a
    /// collapsed encoder; `(mean - floor) / N` as a multiple of a point mass's.
    pub departure: f64,
    /// Standard deviation of `departure` over perfect Gaussian samples.
    pub departure_deviation: f64,
    /// Quantiles of a single slice's statistic for perfect Gaussian samples.
    pub slice_quantiles: Quantiles,
    /// The law of a single slice's statistic for perfect Gaussian samples.
    pub slice_null: Null,
    /// The share of perfect Gaussian samples whose worst slice is as bad. Slices count as
    /// independent, so it is rather too large, above all in few dimensions.
    pub worst_p_value: f64,
    /// The statistic of every slice.
    pub per_slice: Vec<f64>,
}

/// Quantiles of a null distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// 95 %
    pub q95: f64,
    /// 99 %
    pub q99: f64,
    /// 99.9 %
    pub q999: f64,
}

impl Quantiles {
    pub(super) fn of(null: &Null) -> Self {
        Self { q95: null.quantile(0.95), q99: null.quantile(0.99), q999: null.quantile(0.999) }
    }
}
