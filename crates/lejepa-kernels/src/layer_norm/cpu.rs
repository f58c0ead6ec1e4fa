//! Layer normalisation on the CPU.

use rayon::prelude::*;

use crate::sums::{ROWS_PER_TASK, add_up};

/// Mean and inverse standard deviation of a row.
fn moments(row: &[f32], epsilon: f32) -> (f32, f32) {
    let count = row.len() as f32;
    let mean = sum(row.iter().copied()) / count;
    let variance = sum(row.iter().map(|value| (value - mean) * (value - mean))) / count;
    (mean, 1. / (variance + epsilon).sqrt())
}

/// Eight sums side by side: faster and more exact than one.
fn sum(terms: impl ExactSizeIterator<Item = f32>) -> f32 {
    let mut lanes = [0f32; 8];
    for (index, term) in terms.enumerate() {
        lanes[index % 8] += term;
    }
    lanes.iter().sum()
}

pub(super) fn forward(xs: &[f32], weight: &[f32], bias: &[f32], epsilon: f32) -> Vec<f32> {
    let dim = weight.len();
    let mut ys = vec![0.; xs.len()];
    let chunk = dim * ROWS_PER_TASK;
    ys.par_chunks_mut(chunk).zip(xs.par_chunks(chunk)).for_each(|(ys, xs)| {
        for (ys, xs) in ys.chunks_exact_mut(dim).zip(xs.chunks_exact(dim)) {
            let (mean, scale) = moments(xs, epsilon);
            for (((y, x), weight), bias) in ys.iter_mut().zip(xs).zip(weight).zip(bias) {
                *y = (x - mean) * scale * weight + bias;
            }
        }
    });
    ys
}

/// The gradient of the rows.
pub(super) fn input_gradient(xs: &[f32], weight: &[f32], gradients: &[f32], epsilon: f32) -> Vec<f32> {
    let dim = weight.len();
    let mut result = vec![0.; xs.len()];
    let chunk = dim * ROWS_PER_TASK;
    let inputs = xs.par_chunks(chunk).zip(gradients.par_chunks(chunk));
    result.par_chunks_mut(chunk).zip(inputs).for_each(|(result, (xs, gradients))| {
        let rows = xs.chunks_exact(dim).zip(gradients.chunks_exact(dim));
        for (result, (xs, gradients)) in result.chunks_exact_mut(dim).zip(rows) {
            let (mean, scale) = moments(xs, epsilon);
            let normalised = |x: &f32| (x - mean) * scale;
            let weighted = gradients.iter().zip(weight).map(|(gradient, weight)| gradient * weight);
            let mean_weighted = sum(weighted.clone()) / dim as f32;
            let products = weighted.clone().zip(xs).map(|(weighted, x)| weighted * normalised(x));
            let mean_product = sum(products) / dim as f32;
            for ((result, weighted), x) in result.iter_mut().zip(weighted).zip(xs) {
                *result = (weighted - mean_weighted - normalised(x) * mean_product) * scale;
            }
        }
    });
    result
}

/// The gradients of weight and bias, one after the other.
pub(super) fn affine_gradient(xs: &[f32], gradients: &[f32], dim: usize, epsilon: f32) -> Vec<f32> {
    let chunk = dim * ROWS_PER_TASK;
    // Collected in order and added up by one thread: the same sum for any number of threads.
    let partial_sums: Vec<Vec<f32>> = xs
        .par_chunks(chunk)
        .zip(gradients.par_chunks(chunk))
        .map(|(xs, gradients)| {
            let mut sums = vec![0.; 2 * dim];
            let (of_weight, of_bias) = sums.split_at_mut(dim);
            for (xs, gradients) in xs.chunks_exact(dim).zip(gradients.chunks_exact(dim)) {
                let (mean, scale) = moments(xs, epsilon);
                let sums = of_weight.iter_mut().zip(of_bias.iter_mut());
                for (((of_weight, of_bias), x), gradient) in sums.zip(xs).zip(gradients) {
                    *of_weight += gradient * (x - mean) * scale;
                    *of_bias += gradient;
                }
            }
            sums
        })
        .collect();
    add_up(&partial_sums, 2 * dim)
}
