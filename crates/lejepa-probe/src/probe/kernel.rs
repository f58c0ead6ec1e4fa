//! Kernel regression after Nadaraya and Watson (paper, equation NW), with a Gaussian kernel.
//!
//! ```text
//! w_i      = exp(-|q - x_i|^2 / 2 h^2)
//! score(q) = sum_i w_i y_i / sum_i w_i
//! ```
//!
//! Weights are taken relative to that of the nearest sample, which is 1: far from all samples, where every
//! weight would underflow, the nearest decide.

use serde::{Deserialize, Serialize};

use crate::choice::{Candidates, ScoreKind, a_tenth};
use crate::demand::{Size, distances_memory};
use crate::distance::{Distances, scale};
use crate::estimator::{Estimator, Fitted};
use crate::features::Samples;
use crate::learnt::{Columns, Learnt};
use crate::nearest::{Found, LANES, Nearest, any_from, largest};
use crate::params::{Params, ValidParams};
use crate::real::Real;
use crate::rows::Rows;
use crate::settings::{all_positive, positive, share};
use crate::solution::{Solution, Take};
use crate::tiles::Visitor;
use crate::watch::Watch;
use crate::{Choice, Result};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Bandwidths to choose from, as multiples of the root of the mean squared distance between two samples.
    pub bandwidths: Vec<f64>,
    /// Share of the training features on which the bandwidth is chosen; folds of them if that is too few.
    #[serde(default = "crate::choice::a_tenth")]
    pub holdout: f64,
}

/// Settings as linfa has them.
pub type KernelParams = Params<Kernel>;
/// The same, checked.
pub type KernelValidParams = ValidParams<Kernel>;

/// A fitted probe: all training features and a bandwidth.
#[derive(Debug, Clone)]
pub struct KernelSolution<'a> {
    learnt: Learnt<'a>,
    bandwidth: f64,
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
    /// Bandwidths to choose from.
    pub fn params(bandwidths: Vec<f64>) -> KernelParams {
        Self { bandwidths, holdout: a_tenth() }.into()
    }
}

impl KernelParams {
    /// Share of the training features on which the bandwidth is chosen.
    pub fn holdout(self, holdout: f64) -> Self {
        self.with(|kernel| kernel.holdout = holdout)
    }
}

impl Estimator for Kernel {
    type Solution<'a> = KernelSolution<'a>;

    const NAME: &'static str = "kernel";
    const SETTING: &'static str = "h";

    fn check(&self) -> Result<()> {
        all_positive("bandwidths", &self.bandwidths)?;
        share(self.holdout)
    }

    fn given(&self) -> &[f64] {
        &self.bandwidths
    }

    /// `kernel:holdout0.1:cls`
    fn protocol(&self, features: &str, choice: Option<&Choice>) -> String {
        format!("kernel:{}:{features}", Choice::tag(choice, self.holdout))
    }

    fn memory(&self, size: Size) -> u64 {
        distances_memory(size, self.bandwidths.len())
    }

    /// The choice is a multiple.
    fn learn<'a>(
        &self,
        train: Samples<'a>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Fitted<KernelSolution<'a>>> {
        let candidates = Candidates {
            setting: "bandwidths",
            values: &self.bandwidths,
            holdout: self.holdout,
            seed,
            scores: ScoreKind::Probabilities,
        };
        let choice = candidates.choose(train, watch, |trial, judge, watch| {
            let learnt = Learnt::new(trial.fitted);
            let unit = scale(trial.fitted.rows());
            let bandwidths: Vec<f64> = trial.values.iter().map(|multiple| multiple * unit).collect();
            let mut place = 0;
            smoothed(&learnt, trial.held_out.rows(), &bandwidths, watch, &mut |scores| {
                judge.hear((place % bandwidths.len(), place / bandwidths.len()), &learnt.columns, scores);
                place += 1;
            })
        })?;
        let solution = KernelSolution::new(train, choice.value * scale(train.rows()));
        Ok(Fitted { solution, choice: Some(choice) })
    }
}

impl<'a> KernelSolution<'a> {
    /// Remembers samples; `bandwidth` is `h`, a distance between features.
    pub fn new(train: impl Into<Samples<'a>>, bandwidth: f64) -> Self {
        Self { learnt: Learnt::new(train.into()), bandwidth }
    }
}

/// The weighted mean of the targets.
impl Solution for KernelSolution<'_> {
    fn columns(&self) -> &Columns {
        &self.learnt.columns
    }

    fn visit(&self, queries: Rows<'_>, watch: &mut Watch<'_>, take: &mut Take<'_>) -> Result<usize> {
        positive("bandwidth", self.bandwidth)?;
        smoothed(&self.learnt, queries, &[self.bandwidth], watch, take)?;
        Ok(0)
    }
}

/// Scores of every query for every bandwidth, from the same products.
fn smoothed(
    learnt: &Learnt<'_>,
    queries: Rows<'_>,
    bandwidths: &[f64],
    watch: &mut Watch<'_>,
    take: &mut Take<'_>,
) -> Result<()> {
    let train = learnt.samples;
    train.needs_some()?;
    let distances = Distances::new(train.rows(), queries.of_length(train.dim())?);
    let smallest = bandwidths.iter().copied().fold(f64::INFINITY, f64::min);
    let numbers = train.len().saturating_mul(train.dim());
    let small = numbers.saturating_mul(queries.len()) < SMALL;
    match !small && distances.fit_single(SINGLE_LIMIT * smallest * smallest) {
        true => smoothed_in::<f32>(&distances, learnt, bandwidths, watch, take),
        false => smoothed_in::<f64>(&distances, learnt, bandwidths, watch, take),
    }
}

fn smoothed_in<T: Real>(
    distances: &Distances<'_>,
    learnt: &Learnt<'_>,
    bandwidths: &[f64],
    watch: &mut Watch<'_>,
    take: &mut Take<'_>,
) -> Result<()> {
    let squares: Vec<f64> = bandwidths.iter().map(|bandwidth| bandwidth * bandwidth).collect();
    let smoothing = Smoothing { learnt, squares };
    let width = learnt.columns.len() + 1;
    let bytes = size_of::<f64>() * (bandwidths.len() * width + 2 * EXACT + LANES);
    distances.visit((&smoothing, bytes), watch, |query, mut state: Sums<T>| {
        if size_of::<T>() == size_of::<f32>() {
            // Half of what a squared distance lacks to |q|^2: what a product stands for.
            let exact = |row| (distances.squares[query] - distances.exact(query, row)) / 2.;
            smoothing.correct(&mut state, exact);
        }
        for sums in state.sums.chunks_exact_mut(width) {
            let (scores, total) = sums.split_at_mut(width - 1);
            scores.iter_mut().for_each(|score| *score /= total[0]);
            take(scores);
        }
    })
}

/// Sums weighted targets.
struct Smoothing<'a> {
    learnt: &'a Learnt<'a>,
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
        let sums = vec![0.; self.squares.len() * (self.learnt.columns.len() + 1)];
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
        let width = self.learnt.columns.len() + 1;
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
                    self.learnt.add(row, weight, sums);
                    total[0] += weight;
                }
            }
        }
    }
}

impl Smoothing<'_> {
    /// Gives the nearest samples the weights of exact products.
    fn correct<T: Real>(&self, state: &mut Sums<T>, exact: impl Fn(usize) -> f64) {
        let width = self.learnt.columns.len() + 1;
        for (row, product) in state.nearest.rows() {
            let row = row as usize;
            let exact = exact(row);
            for (sums, square) in state.sums.chunks_exact_mut(width).zip(&self.squares) {
                let rounded: f64 = T::weight(product, state.largest, T::rounded(1. / square)).into();
                let change = ((exact - state.largest.into()) / square).exp() - rounded;
                self.learnt.add(row, change, &mut sums[..width - 1]);
                sums[width - 1] += change;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;
    use crate::{Features, Targets, unwatched};

    #[test]
    fn far_from_all_samples_the_nearest_decides() {
        let train = Features::labelled(array![[0.], [1.], [3.]], vec![0, 1, 1], 3).unwrap();
        let scores = KernelSolution::new(&train, 1e-3).scores(&array![[-1e4], [1e4]]).unwrap();
        assert_eq!(scores, array![[1., 0., 0.], [0., 1., 0.]]);
    }

    #[test]
    fn values_are_smoothed() {
        let train = Features::new(array![[0.], [2.]], Targets::Values(array![[1., 5.], [3., 5.]])).unwrap();
        let scores = KernelSolution::new(&train, 0.7).scores(&array![[1.]]).unwrap();
        assert!((&scores - &array![[2., 5.]]).mapv(f64::abs).sum() < 1e-12, "{scores}");
    }

    /// Of scores between 0 and 1, with products in f32.
    const TOLERANCE: f64 = 1e-6;

    #[test]
    fn single_precision_gives_the_same_scores() {
        let wave = |row: usize, column: usize| ((row * 131 + column * 71) as f32 * 0.37).sin() + 3.;
        let bank = Array2::from_shape_fn((1500, 24), |(row, column)| wave(row, column));
        let queries = Array2::from_shape_fn((40, 24), |(row, column)| wave(7 * row + 5, column + 1));
        let train = Features::labelled(bank, (0..1500).map(|row| row % 7).collect(), 7).unwrap();
        let learnt = Learnt::new((&train).into());
        let distances = Distances::new(train.values().into(), (&queries).into());
        let unit = scale(train.values().into());
        let bandwidths = [0.05, 0.2, 1.].map(|multiple| multiple * unit);
        let (mut single, mut double) = (Vec::new(), Vec::new());
        unwatched(|watch| {
            smoothed_in::<f32>(&distances, &learnt, &bandwidths, watch, &mut |scores| {
                single.extend_from_slice(scores)
            })?;
            smoothed_in::<f64>(&distances, &learnt, &bandwidths, watch, &mut |scores| {
                double.extend_from_slice(scores)
            })
        })
        .unwrap();
        assert_eq!(single.len(), 40 * 3 * 7);
        let worst =
            single.iter().zip(&double).map(|(single, double)| (single - double).abs()).fold(0., f64::max);
        assert!(worst < TOLERANCE, "{worst:e}");
    }
}
