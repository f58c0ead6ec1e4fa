//! Batch normalisation on the CPU: the statistics of columns, rows normalised with them, and the way back.

use rayon::prelude::*;

use super::Activation;
use crate::filled::filled;
use crate::sums::{ROWS_PER_TASK, add_up};
use crate::wide::wide;

/// Mean and biased variance of every column, one after the other.
pub(super) fn moments(xs: &[f32], dim: usize) -> Vec<f32> {
    let parts: Vec<Vec<f32>> = (xs.par_chunks(dim * ROWS_PER_TASK))
        .map(|rows| {
            wide(
                #[inline(always)]
                || part_moments(rows, dim),
            )
        })
        .collect();
    // Joined in order by one thread: the same for any number of threads.
    let (mut count, mut mean, mut squares) = (0., vec![0f64; dim], vec![0f64; dim]);
    for (part, rows) in parts.iter().zip(xs.chunks(dim * ROWS_PER_TASK)) {
        let rows = (rows.len() / dim) as f64;
        let total: f64 = count + rows;
        let (part_mean, part_squares) = part.split_at(dim);
        let joined = mean.iter_mut().zip(&mut squares).zip(part_mean.iter().zip(part_squares));
        for ((mean, squares), (&part_mean, &part_squares)) in joined {
            let shift = f64::from(part_mean) - *mean;
            *mean += shift * rows / total;
            *squares += f64::from(part_squares) + shift * shift * count * rows / total;
        }
        count = total;
    }
    let variance = squares.iter().map(|squares| (squares / count) as f32);
    mean.iter().map(|&mean| mean as f32).chain(variance).collect()
}

/// Mean and sum of squared deviations of every column of a few rows.
#[inline(always)]
fn part_moments(rows: &[f32], dim: usize) -> Vec<f32> {
    let mut moments = vec![0.; 2 * dim];
    let (mean, squares) = moments.split_at_mut(dim);
    for row in rows.chunks_exact(dim) {
        mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x);
    }
    let share = dim as f32 / rows.len() as f32;
    mean.iter_mut().for_each(|mean| *mean *= share);
    for row in rows.chunks_exact(dim) {
        for ((squares, x), mean) in squares.iter_mut().zip(row).zip(mean.iter()) {
            *squares += (x - mean) * (x - mean);
        }
    }
    moments
}

/// The statistics and parameters of every column.
pub(super) struct Columns {
    pub(super) mean: Vec<f32>,
    /// `1 / sqrt(var + eps)`.
    pub(super) scale: Vec<f32>,
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) activation: Activation,
}

impl Columns {
    pub(super) fn normalise(&self, xs: &[f32]) -> Vec<f32> {
        let Self { mean, scale, weight, bias, activation } = self;
        let relu = *activation == Activation::Relu;
        let dim = mean.len();
        let chunk = dim * ROWS_PER_TASK;
        filled(xs.len(), chunk, |index, ys| {
            let xs = &xs[index * chunk..];
            wide(
                #[inline(always)]
                || {
                    for (ys, xs) in ys.chunks_exact_mut(dim).zip(xs.chunks_exact(dim)) {
                        let columns = mean.iter().zip(scale).zip(weight.iter().zip(bias));
                        for ((y, x), ((mean, scale), (weight, bias))) in ys.iter_mut().zip(xs).zip(columns) {
                            let value = (x - mean) * scale * weight + bias;
                            *y = if relu & (value <= 0.) { 0. } else { value };
                        }
                    }
                },
            );
        })
    }

    /// Every value's normalised form and the gradient that passes the activation, of one row.
    #[inline(always)]
    fn row<'a>(&'a self, xs: &'a [f32], gradients: &'a [f32]) -> impl Iterator<Item = (f32, f32)> {
        let relu = self.activation == Activation::Relu;
        let affine = self.weight.iter().zip(&self.bias);
        let columns = self.mean.iter().zip(&self.scale).zip(affine);
        xs.iter().zip(gradients).zip(columns).map(
            #[inline(always)]
            move |((x, gradient), ((mean, scale), (weight, bias)))| {
                let normalised = (x - mean) * scale;
                let (cut, gradient) = (relu & (normalised * weight + bias <= 0.), *gradient);
                (normalised, if cut { 0. } else { gradient })
            },
        )
    }

    /// The gradients of weight and bias, one after the other.
    pub(super) fn affine_gradient(&self, xs: &[f32], gradients: &[f32]) -> Vec<f32> {
        let dim = self.mean.len();
        let chunk = dim * ROWS_PER_TASK;
        // Collected in order and added up by one thread: the same sum for any number of threads.
        let partial_sums: Vec<Vec<f32>> = xs
            .par_chunks(chunk)
            .zip(gradients.par_chunks(chunk))
            .map(|(xs, gradients)| {
                let mut sums = vec![0.; 2 * dim];
                let (of_weight, of_bias) = sums.split_at_mut(dim);
                wide(
                    #[inline(always)]
                    || {
                        for (xs, gradients) in xs.chunks_exact(dim).zip(gradients.chunks_exact(dim)) {
                            let sums = of_weight.iter_mut().zip(of_bias.iter_mut());
                            for ((of_weight, of_bias), (normalised, gradient)) in
                                sums.zip(self.row(xs, gradients))
                            {
                                *of_weight += gradient * normalised;
                                *of_bias += gradient;
                            }
                        }
                    },
                );
                sums
            })
            .collect();
        add_up(&partial_sums, 2 * dim)
    }

    /// The gradient of the rows, from those of weight and bias.
    pub(super) fn input_gradient(&self, xs: &[f32], gradients: &[f32], of_affine: &[f32]) -> Vec<f32> {
        let dim = self.mean.len();
        let (of_weight, of_bias) = of_affine.split_at(dim);
        let share = dim as f32 / xs.len() as f32;
        let factor: Vec<f32> =
            self.scale.iter().zip(&self.weight).map(|(scale, weight)| scale * weight).collect();
        let chunk = dim * ROWS_PER_TASK;
        filled(xs.len(), chunk, |index, result| {
            let (xs, gradients) = (&xs[index * chunk..], &gradients[index * chunk..]);
            wide(
                #[inline(always)]
                || {
                    let rows = xs.chunks_exact(dim).zip(gradients.chunks_exact(dim));
                    for (result, (xs, gradients)) in result.chunks_exact_mut(dim).zip(rows) {
                        let columns = factor.iter().zip(of_weight).zip(of_bias);
                        let values = columns.zip(self.row(xs, gradients));
                        for (result, (((factor, of_weight), of_bias), (normalised, gradient))) in
                            result.iter_mut().zip(values)
                        {
                            *result = factor * (gradient - share * (of_bias + normalised * of_weight));
                        }
                    }
                },
            );
        })
    }
}
