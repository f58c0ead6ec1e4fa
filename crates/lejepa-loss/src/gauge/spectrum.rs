//! How evenly embeddings fill the space: eigenvalues of their covariance.
//!
//! A principal direction is weak when the variance along it is below a tenth of what an isotropic
//! Gaussian sample of the same size has at that rank (Marchenko-Pastur). Ranks at which such a sample
//! itself has next to no variance say nothing and are not counted. In simulations
//! (`examples/calibrate.rs`) a perfect sample of 16 or more has a weak direction in less than 0.05 % of
//! all draws, whatever the number of dimensions.
//!
//! ```text
//! RankMe = exp(-sum p ln p),   p = sigma / sum sigma + 1e-7
//! ```
//!
//! with the singular values `sigma` of the centred embeddings.

use candle_core::Tensor;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Side};
use serde::Serialize;

use super::Reference;
use super::features::Features;
use super::marchenko_pastur::expected_variances;
use crate::{Error, Result};

/// Variances along principal directions and along dimensions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spectrum {
    /// Variance along every principal direction, the largest first: `min(samples - 1, dim)` of them.
    pub variances: Vec<f64>,
    /// What an isotropic Gaussian sample of this size and of variance `unit` has at these ranks.
    pub expected: Vec<f64>,
    /// The variance that the reference has: 1, or the mean variance of a dimension.
    pub unit: f64,
    /// Principal directions that this many samples can measure: those of the first ranks.
    pub measurable: usize,
    /// Measurable directions with less than a tenth of the expected variance.
    pub weak: usize,
    /// The effective number of directions.
    pub rankme: f64,
    /// RankMe of an isotropic Gaussian sample of this size.
    pub rankme_expected: f64,
    /// The largest variance over the smallest of the measurable ones; absent if that is zero.
    pub condition: Option<f64>,
    /// Standard deviations of single dimensions.
    pub deviations: Deviations,
}

/// Standard deviations of single dimensions, in short.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Deviations {
    /// The smallest one.
    pub smallest: f64,
    /// The one in the middle.
    pub median: f64,
    /// The largest one.
    pub largest: f64,
}

/// A rank is measurable if a perfect sample has at least this share of the unit there, over the number
/// of samples: smaller eigenvalues scatter by more than a factor of ten (`examples/calibrate.rs`).
const MEASURABLE: f64 = 2.4;
/// Keeps the logarithm of RankMe finite.
const RANKME_EPSILON: f64 = 1e-7;

impl Spectrum {
    /// A direction is weak below this share of the expected variance.
    pub const WEAK: f64 = 0.1;

    /// The spectrum of `(samples, dim)` embeddings.
    pub fn measure(embeddings: &Tensor, reference: Reference) -> Result<Self> {
        let features = Features::new(embeddings)?;
        Ok(Self::of(&features, &Principal::of(&features)?, reference))
    }

    pub(super) fn of(features: &Features, principal: &Principal, reference: Reference) -> Self {
        let unit = match reference {
            Reference::Standard => 1.,
            Reference::Shape => features.mean_variance(),
        };
        let variances = principal.variances.clone();
        let shares = expected_variances(features.dim, features.samples - 1);
        let measurable =
            shares.iter().take_while(|share| **share * features.samples as f64 >= MEASURABLE).count();
        let rankme_expected = rankme(&shares);
        let expected: Vec<f64> = shares.iter().map(|share| share * unit).collect();
        // `<=`: where nothing varies, everything is weak.
        let is_weak = |(variance, expected): &(&f64, &f64)| **variance <= Self::WEAK * **expected;
        let weak = variances.iter().zip(&expected).take(measurable).filter(is_weak).count();
        let smallest = variances[..measurable].last().copied().unwrap_or(0.);
        let condition = (smallest > 0.).then(|| variances[0] / smallest);
        let deviations = Deviations::of(&features.variances);
        Self {
            rankme: rankme(&variances),
            variances,
            expected,
            unit,
            measurable,
            weak,
            rankme_expected,
            condition,
            deviations,
        }
    }

    /// How far each measurable variance is from the expected one, up or down, on a log scale.
    pub(super) fn log_ratios(&self) -> Vec<f64> {
        let ratio = |(variance, expected): (&f64, &f64)| {
            if *variance > 0. { (variance / expected).ln().abs() } else { f64::INFINITY }
        };
        self.variances.iter().zip(&self.expected).take(self.measurable).map(ratio).collect()
    }
}

impl Deviations {
    fn of(variances: &[f64]) -> Self {
        let mut deviations: Vec<f64> = variances.iter().map(|variance| variance.sqrt()).collect();
        deviations.sort_by(f64::total_cmp);
        let last = deviations.len() - 1;
        Self { smallest: deviations[0], median: deviations[last / 2], largest: deviations[last] }
    }
}

/// The effective rank that goes with these variances; 0 where nothing varies.
fn rankme(variances: &[f64]) -> f64 {
    let total: f64 = variances.iter().map(|variance| variance.sqrt()).sum();
    if total == 0. {
        return 0.;
    }
    let entropy = |variance: &f64| {
        let share = variance.sqrt() / total + RANKME_EPSILON;
        -share * share.ln()
    };
    variances.iter().map(entropy).sum::<f64>().exp()
}

/// Principal directions with the variance along them, the largest first.
#[derive(Debug)]
pub(super) struct Principal {
    pub(super) variances: Vec<f64>,
    /// Unit columns, or the samples' weights that make them.
    vectors: Mat<f64>,
    /// Centred samples, where there are fewer of them than dimensions.
    centred: Option<Mat<f64>>,
}

impl Principal {
    /// From the covariance of dimensions, or from the products of samples if those are fewer.
    pub(super) fn of(features: &Features) -> Result<Self> {
        let Features { samples, dim, means, .. } = features;
        let few_samples = samples < dim;
        let mut products = Mat::<f64>::zeros(*dim.min(samples), *dim.min(samples));
        let mut all = few_samples.then(|| Mat::<f64>::zeros(*samples, *dim));
        for (first, block) in features.blocks() {
            let mut block = block?;
            for row in block.chunks_exact_mut(*dim) {
                row.iter_mut().zip(means).for_each(|(value, mean)| *value -= mean);
            }
            let rows = MatRef::from_row_major_slice(&block, block.len() / dim, *dim);
            match &mut all {
                Some(all) => all.subrows_mut(first, rows.nrows()).copy_from(rows),
                None => matmul(&mut products, Accum::Add, rows.transpose(), rows, 1., Par::rayon(0)),
            }
        }
        if let Some(all) = &all {
            matmul(&mut products, Accum::Replace, all, all.transpose(), 1., Par::rayon(0));
        }
        let eigen = products.self_adjoint_eigen(Side::Lower).map_err(|_error| Error::Eigenvalues)?;
        let degrees = (samples - 1) as f64;
        let constant = features.variances.iter().all(|variance| *variance == 0.);
        let variance = |value: &f64| if constant { 0. } else { value.max(0.) / degrees };
        let ascending = eigen.S().column_vector();
        let mut variances: Vec<f64> = ascending.iter().map(variance).rev().collect();
        variances.truncate(*dim.min(&(samples - 1)));
        Ok(Self { variances, vectors: eigen.U().to_owned(), centred: all })
    }

    /// The unit direction of a rank.
    pub(super) fn direction(&self, rank: usize) -> Vec<f64> {
        let column = self.vectors.col(self.vectors.ncols() - 1 - rank);
        let direction: Vec<f64> = match &self.centred {
            Some(centred) => (centred.transpose() * column).iter().copied().collect(),
            None => column.iter().copied().collect(),
        };
        let norm = direction.iter().map(|value| value * value).sum::<f64>().sqrt();
        direction.iter().map(|value| if norm > 0. { value / norm } else { 0. }).collect()
    }
}
