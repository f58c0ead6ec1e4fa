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
//! Parameters are `W (classes, width)`, row by row, then `b (classes)`. Rows are kept in f32, as features are:
//! what an evaluation costs is to read them. All sums are f64.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::exponential::exponential_f64;
use crate::skinny::{PAIR, add_outer, scores};

/// Rows that are worked on at once: in f64 they stay in a core's cache.
const BLOCK: usize = 32;
/// Rows of a task at least, and tasks at most: each has sums of its own.
const TASK: usize = 16 * BLOCK;
const TASKS: usize = 64;

/// Samples with their classes.
pub(crate) struct Losses {
    /// `(samples, width)`
    pub(crate) rows: Vec<f32>,
    /// A multiple of [`crate::skinny::WIDTH`]: what features lack is zeros, whose weights stay zeros.
    pub(crate) width: usize,
    /// One per row, below `classes`.
    pub(crate) labels: Vec<usize>,
    pub(crate) classes: usize,
}

/// The derivatives that a pass sums.
#[derive(Clone, Copy)]
enum Wanted {
    Gradient,
    Curvature,
}

impl Losses {
    /// Weights, and behind them the intercepts.
    pub(crate) fn parameters(&self) -> usize {
        self.weights() + self.classes
    }

    pub(crate) fn weights(&self) -> usize {
        self.width * self.classes
    }

    /// The sum of all losses; writes its gradient.
    pub(crate) fn evaluate(&self, point: &[f64], gradient: &mut [f64]) -> f64 {
        self.sum(point, Wanted::Gradient, gradient)
    }

    /// The diagonal of the Hessian of the sum of all losses.
    pub(crate) fn curvature(&self, point: &[f64]) -> Vec<f64> {
        let mut curvature = vec![0.; self.parameters()];
        self.sum(point, Wanted::Curvature, &mut curvature);
        curvature
    }

    fn sum(&self, point: &[f64], wanted: Wanted, sums: &mut [f64]) -> f64 {
        let count = self.labels.len().div_ceil(TASKS).next_multiple_of(BLOCK).max(TASK);
        let tasks = self.rows.par_chunks(count * self.width).zip(self.labels.par_chunks(count));
        // Collected in order and added up by one thread: the same sum for any number of threads.
        let parts: Vec<(f64, Vec<f64>)> = tasks
            .map(|(rows, labels)| {
                let mut sums = vec![0.; self.parameters()];
                let pass = Pass { losses: self, point, rows, labels, wanted, sums: &mut sums };
                (Arch::new().dispatch(pass), sums)
            })
            .collect();
        sums.fill(0.);
        let mut value = 0.;
        for (part, part_sums) in parts {
            value += part;
            sums.iter_mut().zip(part_sums).for_each(|(sum, part)| *sum += part);
        }
        value
    }
}

/// Some of the rows.
struct Pass<'a> {
    losses: &'a Losses,
    point: &'a [f64],
    rows: &'a [f32],
    labels: &'a [usize],
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
        for (rows, labels) in self.rows.chunks(BLOCK * width).zip(self.labels.chunks(BLOCK)) {
            block.iter_mut().zip(rows).for_each(|(to, from)| *to = f64::from(*from));
            // A row of the block before makes up for an odd number of them; its scores are left alone.
            let even = labels.len().next_multiple_of(PAIR);
            scores(simd, &block[..even * width], weights, width, &mut residuals[..even * classes]);
            let (block, residuals) = (&mut block[..rows.len()], &mut residuals[..labels.len() * classes]);
            value += softmax(residuals, intercepts, labels);
            if let Wanted::Curvature = self.wanted {
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
fn softmax(scores: &mut [f64], intercepts: &[f64], labels: &[usize]) -> f64 {
    let classes = intercepts.len();
    let mut best = [0; BLOCK];
    let mut value = 0.;
    for ((row, &label), best) in scores.chunks_exact_mut(classes).zip(labels).zip(&mut best) {
        row.iter_mut().zip(intercepts).for_each(|(score, intercept)| *score += intercept);
        for class in 1..classes {
            *best = if row[class] > row[*best] { class } else { *best };
        }
        let largest = row[*best];
        value += largest - row[label];
        row.iter_mut().for_each(|score| *score -= largest);
    }
    scores.iter_mut().for_each(|score| *score = exponential_f64(*score));
    for ((row, &label), best) in scores.chunks_exact_mut(classes).zip(labels).zip(best) {
        row[best] = 0.;
        let others: f64 = row.iter().sum();
        row[best] = 1.;
        value += others.ln_1p();
        row.iter_mut().for_each(|power| *power /= 1. + others);
        row[label] -= 1.;
    }
    value
}
