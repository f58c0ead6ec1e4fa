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
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::choice::Candidates;
use crate::distance::{Distances, scale};
use crate::nearest::{Found, LANES, Nearest, any_from, largest};
use crate::real::Real;
use crate::tiles::{Visitor, visit_products};
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

/// Rounding of an exponent up to which products in f32 serve.
const SINGLE_LIMIT: f64 = 1e-3;
/// After products in f32 the weights of so many nearest samples are computed once more without rounding; the
/// errors of the others, none of which has a large share, cancel.
const EXACT: usize = 64;
/// Fewer numbers to multiply than this take no time in f64 either.
const SMALL: usize = 1 << 30;
/// All weights below `exp(-40)` together change no score.
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
    let small = train.values().len().saturating_mul(queries.nrows()) < SMALL;
    match !small && distances.fit_single(SINGLE_LIMIT * smallest * smallest) {
        true => smoothed_in::<f32>(&distances, train.targets(), bandwidths),
        false => smoothed_in::<f64>(&distances, train.targets(), bandwidths),
    }
}

fn smoothed_in<T: Real>(distances: &Distances<'_>, targets: &Targets, bandwidths: &[f64]) -> Vec<Scores> {
    let layout = distances.layout::<T>();
    let squares: Vec<f64> = bandwidths.iter().map(|bandwidth| bandwidth * bandwidth).collect();
    let smoothing = Smoothing { targets, squares };
    let mut sums = visit_products(&layout.queries, &layout.bank, &smoothing);
    if size_of::<T>() == size_of::<f32>() {
        let queries = sums.par_iter_mut().zip(&layout.squares).enumerate();
        queries.for_each(|(query, (sums, square))| {
            // Half of what a squared distance lacks to |q|^2: what a product stands for.
            let exact = |row| (square - distances.exact(query, row)) / 2.;
            smoothing.correct(sums, exact);
        });
    }
    let width = targets.outputs() + 1;
    let scores = |bandwidth: usize| {
        Array2::from_shape_fn((sums.len(), width - 1), |(query, output)| {
            let sums = &sums[query].sums[bandwidth * width..][..width];
            sums[output] / sums[width - 1]
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
    nearest: Found<T>,
}

const NEAREST: Nearest = Nearest { count: EXACT };

impl<T: Real> Visitor<T> for Smoothing<'_> {
    type State = Sums<T>;

    fn start(&self, query: usize) -> Sums<T> {
        let sums = vec![0.; self.squares.len() * (self.targets.outputs() + 1)];
        Sums { largest: T::LOWEST, sums, nearest: NEAREST.start(query) }
    }

    #[inline(always)]
    fn visit(&self, state: &mut Sums<T>, first: usize, products: &[T]) {
        if size_of::<T>() == size_of::<f32>() {
            NEAREST.visit(&mut state.nearest, first, products);
        }
        let before: f64 = state.largest.into();
        state.largest = largest(state.largest, products);
        let now: f64 = state.largest.into();
        let width = self.targets.outputs() + 1;
        for (sums, square) in state.sums.chunks_exact_mut(width).zip(&self.squares) {
            // 0 before the first tile, whose sums are zeros.
            let shrunk = ((before - now) / square).exp();
            sums.iter_mut().for_each(|sum| *sum *= shrunk);
            let least = T::rounded(now - NEGLIGIBLE * square);
            let (sums, total) = sums.split_at_mut(width - 1);
            let mut weights = [T::rounded(0.); LANES];
            for (lanes, first) in products.chunks(LANES).zip((first..).step_by(LANES)) {
                if !any_from(least, lanes) {
                    continue;
                }
                for (weight, product) in weights.iter_mut().zip(lanes) {
                    *weight = T::weight(*product, state.largest, T::rounded(1. / square));
                }
                for (row, weight) in (first..).zip(&weights[..lanes.len()]) {
                    let weight = (*weight).into();
                    self.targets.add(row, weight, sums);
                    total[0] += weight;
                }
            }
        }
    }
}

impl Smoothing<'_> {
    /// Gives the nearest samples the weights of exact products.
    fn correct<T: Real>(&self, state: &mut Sums<T>, exact: impl Fn(usize) -> f64) {
        let width = self.targets.outputs() + 1;
        for (row, product) in state.nearest.rows() {
            let exact = exact(row);
            for (sums, square) in state.sums.chunks_exact_mut(width).zip(&self.squares) {
                let rounded: f64 = T::weight(product, state.largest, T::rounded(1. / square)).into();
                let change = ((exact - state.largest.into()) / square).exp() - rounded;
                self.targets.add(row, change, &mut sums[..width - 1]);
                sums[width - 1] += change;
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

    /// Of scores between 0 and 1, with products in f32.
    const TOLERANCE: f64 = 1e-6;

    #[test]
    fn single_precision_gives_the_same_scores() {
        let wave = |row: usize, column: usize| ((row * 131 + column * 71) as f32 * 0.37).sin() + 3.;
        let bank = Array2::from_shape_fn((1500, 24), |(row, column)| wave(row, column));
        let queries = Array2::from_shape_fn((40, 24), |(row, column)| wave(7 * row + 5, column + 1));
        let targets = Targets::Classes { labels: (0..1500).map(|row| row % 7).collect(), classes: 7 };
        let distances = Distances::new(&bank, &queries);
        let unit = scale(&bank);
        let bandwidths = [0.05, 0.2, 1.].map(|multiple| multiple * unit);
        let single = smoothed_in::<f32>(&distances, &targets, &bandwidths);
        let double = smoothed_in::<f64>(&distances, &targets, &bandwidths);
        for ((single, double), bandwidth) in single.iter().zip(&double).zip(bandwidths) {
            let worst = (single - double).mapv(f64::abs).into_iter().fold(0., f64::max);
            assert!(worst < TOLERANCE, "{bandwidth}: {worst:e}");
        }
    }
}
