//! Kernel regression after Nadaraya and Watson (paper, equation NW), with a Gaussian kernel.
//!
//! ```text
//! w_i      = exp(-|q - x_i|^2 / 2 h^2)
//! score(q) = sum_i w_i y_i / sum_i w_i
//! ```
//!
//! Weights are taken relative to that of the nearest sample, which is 1: far from all samples, where every
//! weight would underflow, the nearest decide.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::choice::Candidates;
use crate::distance::{Distances, scale};
use crate::nearest::LANES;
use crate::tiles::{Real, Visitor, visit_products};
use crate::{Choice, Error, Features, Result, Scores, Targets};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Bandwidths to choose from, as multiples of the root of the mean squared distance between two samples.
    pub bandwidths: Vec<f64>,
    /// Share of the training features on which the bandwidth is chosen.
    pub holdout: f64,
}

/// A fitted probe: all training features and a bandwidth.
#[derive(Debug, Clone, Copy)]
pub struct KernelSolution<'a> {
    /// What it remembers.
    pub train: &'a Features,
    /// `h`, a distance between features.
    pub bandwidth: f64,
}

/// Rounding of an exponent up to which products in f32 serve: scores err by less than this.
const SINGLE_LIMIT: f64 = 1e-6;
/// A weight of `exp(-40)` changes no score in f64.
const NEGLIGIBLE: f64 = 40.;

impl Kernel {
    /// `kernel:holdout0.1:cls`, with the kind of features
    pub fn protocol(&self, features: &str) -> String {
        format!("kernel:holdout{}:{features}", self.holdout)
    }

    /// Chooses the bandwidth on held-out training features. Returns the choice, a multiple, too.
    pub fn fit<'a>(&self, train: &'a Features, seed: u64) -> Result<(KernelSolution<'a>, Choice)> {
        let candidates =
            Candidates { setting: "bandwidths", values: &self.bandwidths, holdout: self.holdout, seed };
        let choice = candidates.choose(train, |fitted, held_out, multiples| {
            let unit = scale(fitted.values());
            let bandwidths: Vec<f64> = multiples.iter().map(|multiple| multiple * unit).collect();
            Ok(smoothed(fitted, held_out.values(), &bandwidths))
        })?;
        Ok((KernelSolution { train, bandwidth: choice.value * scale(train.values()) }, choice))
    }
}

impl KernelSolution<'_> {
    /// The weighted mean of the targets.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - result: `(queries, outputs)`
    pub fn scores(&self, queries: &Array2<f32>) -> Result<Scores> {
        self.train.compare(queries)?;
        if !(self.bandwidth.is_finite() && self.bandwidth > 0.) {
            return Err(Error::NotPositive { setting: "bandwidth", got: self.bandwidth });
        }
        Ok(smoothed(self.train, queries, &[self.bandwidth]).swap_remove(0))
    }
}

/// Scores for every bandwidth, from the same products.
fn smoothed(train: &Features, queries: &Array2<f32>, bandwidths: &[f64]) -> Vec<Scores> {
    let distances = Distances::new(train.values(), queries);
    let smallest = bandwidths.iter().copied().fold(f64::INFINITY, f64::min);
    match distances.fit_single(SINGLE_LIMIT * smallest * smallest) {
        true => smoothed_in::<f32>(&distances, train.targets(), bandwidths),
        false => smoothed_in::<f64>(&distances, train.targets(), bandwidths),
    }
}

fn smoothed_in<T: Real>(distances: &Distances<'_>, targets: &Targets, bandwidths: &[f64]) -> Vec<Scores> {
    let layout = distances.layout::<T>();
    let squares: Vec<f64> = bandwidths.iter().map(|bandwidth| bandwidth * bandwidth).collect();
    let sums = visit_products(&layout.queries, &layout.bank, &Smoothing { targets, squares });
    let outputs = targets.outputs();
    let scores = |bandwidth: usize| {
        Array2::from_shape_fn((sums.len(), outputs), |(query, output)| {
            let sums = &sums[query].sums[bandwidth * (outputs + 1)..][..=outputs];
            sums[output] / sums[outputs]
        })
    };
    (0..bandwidths.len()).map(scores).collect()
}

/// Sums weighted targets.
struct Smoothing<'a> {
    targets: &'a Targets,
    /// `h^2`
    squares: Vec<f64>,
}

/// The sums of one query.
struct Sums<T> {
    /// The largest product so far: that of the nearest sample, whose weight is 1.
    largest: T,
    /// For every bandwidth the weighted targets, then the weights.
    sums: Vec<f64>,
}

impl<T: Real> Visitor<T> for Smoothing<'_> {
    type State = Sums<T>;

    fn start(&self, _query: usize) -> Sums<T> {
        Sums { largest: T::LOWEST, sums: vec![0.; self.squares.len() * (self.targets.outputs() + 1)] }
    }

    fn visit(&self, state: &mut Sums<T>, first: usize, products: &[T]) {
        let (larger, width) = (
            |largest: T, next: &T| if *next > largest { *next } else { largest },
            self.targets.outputs() + 1,
        );
        let before = state.largest;
        state.largest = products.iter().fold(before, larger);
        let largest: f64 = state.largest.into();
        for (sums, square) in state.sums.chunks_exact_mut(width).zip(&self.squares) {
            let (sums, total) = sums.split_at_mut(width - 1);
            // 0 before the first tile, whose sums are zeros.
            let shrunk = ((before.into() - largest) / square).exp();
            sums.iter_mut().chain(&mut *total).for_each(|sum| *sum *= shrunk);
            let least = T::rounded(largest - NEGLIGIBLE * square);
            for (lanes, first) in products.chunks(LANES).zip((first..).step_by(LANES)) {
                if lanes.iter().fold(T::LOWEST, larger) > least {
                    for (row, &product) in (first..).zip(lanes) {
                        let weight = ((product.into() - largest) / square).exp();
                        self.targets.add(row, weight, sums);
                        total[0] += weight;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn far_from_all_samples_the_nearest_decides() {
        let train = Features::labelled(array![[0.], [1.], [3.]], vec![0, 1, 1], 3).unwrap();
        let scores =
            KernelSolution { train: &train, bandwidth: 1e-3 }.scores(&array![[-1e4], [1e4]]).unwrap();
        assert_eq!(scores, array![[1., 0., 0.], [0., 1., 0.]]);
    }

    #[test]
    fn values_are_smoothed() {
        let train = Features::new(array![[0.], [2.]], Targets::Values(array![[1., 5.], [3., 5.]])).unwrap();
        let scores = KernelSolution { train: &train, bandwidth: 0.7 }.scores(&array![[1.]]).unwrap();
        assert!((&scores - &array![[2., 5.]]).mapv(f64::abs).sum() < 1e-12, "{scores}");
    }
}
