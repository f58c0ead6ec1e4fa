//! The losses of multinomial logistic regression, with first and second derivatives, in one pass over the rows.
//!
//! ```text
//! scores     s_i = W x_i + b                                       (classes)
//! residuals  r_i = softmax(s_i) - one-hot(y_i)                     (classes)
//! losses     sum_i -log softmax(s_i)[y_i]
//! gradient   sum_i r_ic x_ij            of W, sum_i r_ic           of b
//! curvature  sum_i p_ic (1 - p_ic) x_ij^2     and without the square: the Hessian's diagonal
//! ```
//!
//! Parameters are `W (classes, width)`, row by row, then `b (classes)`, for rows in principal directions. Rows are
//! kept in f32, as features are: what an evaluation costs is to read them. Where they are too many to be kept a
//! second time, it is the weights that are turned back, and the gradient that is turned. All sums are f64.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::Result;
use crate::centred::product;
use crate::exponential::exponential_f64;
use crate::principal::Principal;
use crate::rows::Rows;
use crate::skinny::{PAIR, add_outer, scores};
use crate::watch::Watch;

/// Rows that are worked on at once: in f64 they stay in a core's cache.
const BLOCK: usize = 32;
/// Rows of a task at least, and tasks about: each has sums of its own.
const TASK: usize = 16 * BLOCK;
const TASKS: usize = 64;
/// Products of a task at most, about: some tenths of a second.
const WORK: usize = 1 << 32;

/// Samples with their classes.
pub(crate) struct Losses<'a> {
    pub(crate) rows: Turned<'a>,
    /// A multiple of [`crate::skinny::WIDTH`]: what features lack is zeros, whose weights stay zeros.
    pub(crate) width: usize,
    /// One per row, below `classes`.
    pub(crate) labels: &'a [u32],
    pub(crate) classes: usize,
}

/// Rows in principal directions.
pub(crate) enum Turned<'a> {
    /// `(samples, width)`
    Kept(&'a [f32]),
    /// Features as they are, with as many directions as dimensions.
    ByWeights { features: Rows<'a>, principal: &'a Principal },
}

/// The derivatives that a pass sums.
#[derive(Clone, Copy)]
enum Wanted {
    Gradient,
    Curvature,
}

impl Losses<'_> {
    /// Weights, and behind them the intercepts.
    pub(crate) fn parameters(&self) -> usize {
        self.weights() + self.classes
    }

    pub(crate) fn weights(&self) -> usize {
        self.width * self.classes
    }

    /// The sum of all losses; writes its gradient.
    pub(crate) fn evaluate(&self, point: &[f64], gradient: &mut [f64], watch: &mut Watch<'_>) -> Result<f64> {
        match &self.rows {
            Turned::Kept(_) => self.sum(point, Wanted::Gradient, gradient, watch),
            Turned::ByWeights { principal: Principal { directions, .. }, .. } => {
                let value =
                    self.sum(&self.turned(point, directions.as_ref()), Wanted::Gradient, gradient, watch)?;
                gradient.copy_from_slice(&self.turned(gradient, directions.transpose()));
                Ok(value)
            }
        }
    }

    /// The diagonal of the Hessian of the sum of all losses.
    pub(crate) fn curvature(&self, point: &[f64], watch: &mut Watch<'_>) -> Result<Vec<f64>> {
        let mut curvature = vec![0.; self.parameters()];
        match &self.rows {
            Turned::Kept(_) => self.sum(point, Wanted::Curvature, &mut curvature, watch)?,
            Turned::ByWeights { principal: Principal { directions, .. }, .. } => {
                self.sum(&self.turned(point, directions.as_ref()), Wanted::Curvature, &mut curvature, watch)?
            }
        };
        Ok(curvature)
    }

    /// Every class's weights times a matrix `(dim, dim)`; intercepts as they are.
    fn turned(&self, point: &[f64], matrix: MatRef<'_, f64>) -> Vec<f64> {
        let (weights, intercepts) = point.split_at(self.weights());
        let weights = MatRef::from_column_major_slice(weights, self.width, self.classes);
        let turned = product(matrix, weights.subrows(0, matrix.ncols()));
        let mut point = vec![0.; self.weights()];
        for (class, to) in point.chunks_exact_mut(self.width).enumerate() {
            to.iter_mut().zip(turned.col(class).iter()).for_each(|(to, from)| *to = *from);
        }
        point.extend_from_slice(intercepts);
        point
    }

    fn sum(&self, point: &[f64], wanted: Wanted, sums: &mut [f64], watch: &mut Watch<'_>) -> Result<f64> {
        let samples = self.labels.len();
        let small = (WORK / self.weights().max(1)).max(TASK).next_multiple_of(BLOCK);
        let count = samples.div_ceil(TASKS).next_multiple_of(BLOCK).clamp(TASK, small);
        let tasks: Vec<usize> = (0..samples).step_by(count).collect();
        sums.fill(0.);
        let mut value = 0.;
        // Added up in order and by one thread: the same sum for any number of threads.
        for (turn, firsts) in tasks.chunks(rayon::current_num_threads().max(1)).enumerate() {
            watch.at((turn * firsts.len() * count) as f64 / samples as f64)?;
            let parts: Vec<(f64, Vec<f64>)> = firsts
                .par_iter()
                .map(|&first| {
                    let mut sums = vec![0.; self.parameters()];
                    let last = samples.min(first + count);
                    let pass = Pass { losses: self, point, range: first..last, wanted, sums: &mut sums };
                    (Arch::new().dispatch(pass), sums)
                })
                .collect();
            for (part, part_sums) in parts {
                value += part;
                sums.iter_mut().zip(part_sums).for_each(|(sum, part)| *sum += part);
            }
        }
        Ok(value)
    }

    /// Writes rows from the `first` on into a block `(rows, width)`, centred.
    fn load(&self, first: usize, block: &mut [f64]) {
        match &self.rows {
            Turned::Kept(rows) => {
                block
                    .iter_mut()
                    .zip(&rows[first * self.width..])
                    .for_each(|(to, from)| *to = f64::from(*from));
            }
            Turned::ByWeights { features, principal } => {
                for (row, to) in block.chunks_exact_mut(self.width).enumerate() {
                    let row = features.row(first + row);
                    let values =
                        row.iter().zip(&principal.mean).map(|(value, mean)| f64::from(*value) - mean);
                    to.iter_mut().zip(values).for_each(|(to, value)| *to = value);
                }
            }
        }
    }

    /// Turns loaded rows into principal directions, where they are not yet.
    fn turn(&self, block: &mut [f64]) {
        let Turned::ByWeights { principal: Principal { directions, .. }, .. } = &self.rows else { return };
        let (rows, dim) = (block.len() / self.width, directions.nrows());
        let mut turned = Mat::zeros(rows, dim);
        let from = MatRef::from_row_major_slice(block, rows, self.width).subcols(0, dim);
        matmul(turned.as_mut(), Accum::Replace, from, directions.as_ref(), 1., Par::Seq);
        for (row, to) in block.chunks_exact_mut(self.width).enumerate() {
            to.iter_mut().zip(turned.row(row).iter()).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Some of the rows.
struct Pass<'a> {
    losses: &'a Losses<'a>,
    point: &'a [f64],
    range: std::ops::Range<usize>,
    wanted: Wanted,
    sums: &'a mut [f64],
}

impl WithSimd for Pass<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let Losses { width, classes, .. } = *self.losses;
        let (weights, intercepts) = self.point.split_at(width * classes);
        let (weight_sums, intercept_sums) = self.sums.split_at_mut(width * classes);
        let mut block = vec![0.; BLOCK * width]; // (rows, width)
        let mut residuals = vec![0.; BLOCK * classes]; // (rows, classes)
        let mut value = 0.;
        for first in self.range.clone().step_by(BLOCK) {
            let labels = &self.losses.labels[first..self.range.end.min(first + BLOCK)];
            self.losses.load(first, &mut block[..labels.len() * width]);
            // A row of the block before makes up for an odd number of them; its scores are left alone.
            let even = labels.len().next_multiple_of(PAIR);
            scores(simd, &block[..even * width], weights, width, &mut residuals[..even * classes]);
            let block = &mut block[..labels.len() * width];
            let residuals = &mut residuals[..labels.len() * classes];
            value += softmax(residuals, intercepts, labels);
            if let Wanted::Curvature = self.wanted {
                self.losses.turn(block);
                block.iter_mut().for_each(|value| *value *= *value);
                // Either p (1 - p) or, with a residual of p - 1, the same.
                residuals.iter_mut().for_each(|residual| *residual = residual.abs() * (1. - residual.abs()));
            }
            add_outer(simd, block, residuals, width, weight_sums);
            for residuals in residuals.chunks_exact(classes) {
                intercept_sums.iter_mut().zip(residuals).for_each(|(sum, residual)| *sum += residual);
            }
        }
        value
    }
}

/// Scores without intercepts become `softmax - one-hot`; returns the sum of the losses, to the last digit even
/// where they are next to nothing.
///
/// # Shapes
/// - `scores`: `(rows, classes)`
#[inline(always)]
fn softmax(scores: &mut [f64], intercepts: &[f64], labels: &[u32]) -> f64 {
    let classes = intercepts.len();
    let mut best = [0; BLOCK];
    let mut value = 0.;
    for ((row, &label), best) in scores.chunks_exact_mut(classes).zip(labels).zip(&mut best) {
        row.iter_mut().zip(intercepts).for_each(|(score, intercept)| *score += intercept);
        for class in 1..classes {
            *best = if row[class] > row[*best] { class } else { *best };
        }
        let largest = row[*best];
        value += largest - row[label as usize];
        row.iter_mut().for_each(|score| *score -= largest);
    }
    scores.iter_mut().for_each(|score| *score = exponential_f64(*score));
    for ((row, &label), best) in scores.chunks_exact_mut(classes).zip(labels).zip(best) {
        row[best] = 0.;
        let others: f64 = row.iter().sum();
        row[best] = 1.;
        value += others.ln_1p();
        row.iter_mut().for_each(|power| *power /= 1. + others);
        row[label as usize] -= 1.;
    }
    value
}
