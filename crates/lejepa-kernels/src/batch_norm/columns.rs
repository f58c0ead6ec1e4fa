//! The statistics of columns, and rows normalised with them.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::super::ROWS_PER_TASK;
use super::super::contiguous::values;
use super::super::filled::filled;
use super::super::wide::wide;
use super::Activation;

/// Mean and biased variance of every column, one after the other.
struct Moments;

impl CustomOp1 for Moments {
    fn name(&self) -> &'static str {
        "batch-moments"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let (_samples, dim) = layout.shape().dims2()?;
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
        let moments = mean.iter().map(|&mean| mean as f32).chain(variance).collect();
        Ok((CpuStorage::F32(moments), Shape::from((2, dim))))
    }
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

/// What is known of every column.
pub(super) struct Columns {
    pub(super) mean: Vec<f32>,
    /// `1 / sqrt(var + eps)`.
    pub(super) scale: Vec<f32>,
    pub(super) weight: Vec<f32>,
    bias: Vec<f32>,
    activation: Activation,
}

impl Columns {
    /// Of normalised rows, with their mean and biased variance.
    pub(super) fn new(
        xs: &Tensor,
        [weight, bias]: [&Tensor; 2],
        epsilon: f64,
        activation: Activation,
    ) -> Result<(Self, [Tensor; 2])> {
        let moments = xs.apply_op1_no_bwd(&Moments)?; // (2, dim)
        let (mean, variance) = (moments.get(0)?, moments.get(1)?);
        let inverse_root = |value: &f32| 1. / (value + epsilon as f32).sqrt();
        let scale = variance.to_vec1()?.iter().map(inverse_root).collect();
        let (weight, bias) = (weight.to_vec1()?, bias.to_vec1()?);
        Ok((Self { mean: mean.to_vec1()?, scale, weight, bias, activation }, [mean, variance]))
    }

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
    pub(super) fn row<'a>(&'a self, xs: &'a [f32], gradients: &'a [f32]) -> impl Iterator<Item = (f32, f32)> {
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
}
