//! The second half of a block: `y = x + factor[image] gamma fc2(gelu(fc1(norm(x))))`.
//!
//! Kept: the hidden rows before the activation.

use rayon::prelude::*;

use super::super::{Images, MlpBranch};
use super::rows::{add_kept, add_rows, add_up, gather, split, split_mut, standardise_kept};
use super::{NormedLinear, ROWS_AT_A_TIME, ScaledLinear};
use crate::gelu::{activate, activate_both};
use crate::gemm::{Matrix, MatrixMut, Panels, Start, multiply, multiply_transposed};
use crate::operation::{Joint, JointInputs};
use crate::profile::Laps;
use crate::scratch::with_scratch;
use crate::standardise::standardise_gradient;

pub(super) struct Mlp {
    epsilon: f32,
    images: Images,
}

impl Mlp {
    pub(super) fn new(branch: &MlpBranch<'_>) -> Self {
        Self { epsilon: branch.epsilon, images: branch.images.clone() }
    }
}

/// The parameters by their places.
fn layers<'a>(parameters: &[&'a [f32]]) -> (NormedLinear<'a>, ScaledLinear<'a>) {
    let first = NormedLinear {
        norm_weight: parameters[0],
        norm_bias: parameters[1],
        weight: parameters[2],
        bias: parameters[3],
    };
    let second =
        ScaledLinear { weight: parameters[4], bias: parameters[5], gamma: parameters.get(6).copied() };
    (first, second)
}

impl Joint for Mlp {
    /// `(images * tokens, hidden)`; in every task those of images that are not left out come first.
    type Kept = Vec<f32>;

    fn name(&self) -> &'static str {
        "mlp-branch"
    }

    fn forward(&self, rows: &[f32], parameters: &[&[f32]]) -> (Vec<f32>, Vec<f32>) {
        let (first, second) = layers(parameters);
        let (dim, hidden) = (first.inputs(), second.inputs());
        let folded = first.fold(0, 1.);
        let widening = folded.forward(0..hidden);
        let (narrowing, second_bias) = second.forward();
        let tokens = self.images.tokens;
        let task = self.images.of_task();
        let mut ys = vec![0.; rows.len()];
        let mut kept_rows = vec![0.; rows.len() / dim * hidden];
        let image = tokens * dim;
        let tasks = ys.par_chunks_mut(task * image).zip(rows.par_chunks(task * image));
        let tasks = tasks.zip(kept_rows.par_chunks_mut(task * tokens * hidden)).enumerate();
        tasks.with_max_len(1).for_each(|(index, ((ys, xs), hidden_rows))| {
            let kept = self.images.kept(index * task, xs.len() / image);
            let count = kept.len() * tokens;
            let block = count.min(ROWS_AT_A_TIME);
            ys.copy_from_slice(xs);
            let mut laps = Laps::start();
            with_scratch(
                [count * dim, count, block * hidden, count * dim],
                |[normed, scales, active, changes]| {
                    standardise_kept(&kept, xs, normed, scales, dim, self.epsilon);
                    laps.end("norms");
                    let blocks =
                        normed.chunks(ROWS_AT_A_TIME * dim).zip(changes.chunks_mut(ROWS_AT_A_TIME * dim));
                    let blocks = blocks.zip(hidden_rows.chunks_mut(ROWS_AT_A_TIME * hidden));
                    for ((normed, changes), hidden_rows) in blocks {
                        let length = normed.len() / dim * hidden;
                        let (hidden_rows, active) = (&mut hidden_rows[..length], &mut active[..length]);
                        let result = MatrixMut::new(hidden_rows, hidden);
                        multiply(Matrix::new(normed, dim), &widening, result, Start::Row(&folded.bias));
                        activate(hidden_rows, active);
                        let result = MatrixMut::new(changes, dim);
                        multiply(Matrix::new(active, hidden), &narrowing, result, Start::Row(&second_bias));
                    }
                    add_kept(&kept, changes, ys, image, |kept| kept.factor);
                    laps.end("MLP");
                },
            );
        });
        (ys, kept_rows)
    }

    fn backward(&self, inputs: &JointInputs<'_>, kept_rows: Vec<f32>) -> (Option<Vec<f32>>, Vec<Vec<f32>>) {
        let JointInputs { rows, parameters, gradient, .. } = *inputs;
        let (first, second) = layers(parameters);
        let (dim, hidden) = (first.inputs(), second.inputs());
        let folded = first.fold(0, 1.);
        let layers =
            Layers { dim, hidden, widening: folded.backward(0..hidden), narrowing: second.backward() };
        let (task, of_sum) = (self.images.of_task(), self.images.of_sum());
        let (image, hidden_image) = (self.images.tokens * dim, self.images.tokens * hidden);
        let mut result = vec![0.; rows.len()];
        let parts = result.par_chunks_mut(of_sum * image).zip(rows.par_chunks(of_sum * image));
        let parts = parts.zip(gradient.par_chunks(of_sum * image));
        let parts = parts.zip(kept_rows.par_chunks(of_sum * hidden_image)).enumerate();
        let lengths = [hidden * dim, hidden, hidden * dim, dim];
        let sums = parts.with_max_len(1).map(|(part, (((result, xs), gradient), hidden_rows))| {
            let mut sums = vec![0.; lengths.iter().sum()];
            let tasks = result.chunks_mut(task * image).zip(xs.chunks(task * image));
            let tasks = tasks.zip(gradient.chunks(task * image));
            let tasks = tasks.zip(hidden_rows.chunks(task * hidden_image)).enumerate();
            for (index, (((result, xs), gradient), hidden_rows)) in tasks {
                let first = part * of_sum + index * task;
                let rows = Rows { first, xs, gradient, hidden_rows };
                self.task_gradient(&layers, &rows, result, split_mut(&mut sums, lengths));
            }
            sums
        });
        let [first_weight, first_bias, second_weight, second_bias] = split(add_up(sums.collect()), lengths);
        let of_first = first.unfold(first_weight, first_bias, 0, 1.);
        let of_second = second.unfold(second_weight, second_bias);
        (Some(result), of_first.into_iter().chain(of_second).collect())
    }
}

/// The layers as the backward pass needs them.
struct Layers {
    dim: usize,
    hidden: usize,
    widening: Panels,
    narrowing: Panels,
}

/// What a task is about: images from `first` on.
struct Rows<'a> {
    first: usize,
    xs: &'a [f32],
    gradient: &'a [f32],
    hidden_rows: &'a [f32],
}

impl Mlp {
    fn task_gradient(&self, layers: &Layers, rows: &Rows<'_>, result: &mut [f32], sums: [&mut [f32]; 4]) {
        let Layers { dim, hidden, .. } = *layers;
        let [first_weight, first_bias, second_weight, second_bias] = sums;
        let tokens = self.images.tokens;
        let image = tokens * dim;
        let kept = self.images.kept(rows.first, rows.xs.len() / image);
        let count = kept.len() * tokens;
        let block = count.min(ROWS_AT_A_TIME);
        result.copy_from_slice(rows.gradient);
        let lengths = [count, count * dim, count * dim, count * dim, block * hidden, block * hidden];
        let mut laps = Laps::start();
        with_scratch(lengths, |[scales, normed, gradient, of_normed, active, slopes]| {
            standardise_kept(&kept, rows.xs, normed, scales, dim, self.epsilon);
            laps.end("norms");
            gather(&kept, rows.gradient, gradient, image);
            let blocks = normed.chunks(ROWS_AT_A_TIME * dim).zip(gradient.chunks(ROWS_AT_A_TIME * dim));
            let blocks = blocks.zip(rows.hidden_rows.chunks(ROWS_AT_A_TIME * hidden));
            let blocks = blocks.zip(of_normed.chunks_mut(ROWS_AT_A_TIME * dim));
            for (((normed, gradient), hidden_rows), of_normed) in blocks {
                let length = normed.len() / dim * hidden;
                let (active, slopes) = (&mut active[..length], &mut slopes[..length]);
                let (normed, gradient_rows) = (Matrix::new(normed, dim), Matrix::new(gradient, dim));
                multiply(gradient_rows, &layers.narrowing, MatrixMut::new(slopes, hidden), Start::Zero);
                activate_both(&hidden_rows[..length], active, slopes);
                let (active, slope_rows) = (Matrix::new(active, hidden), Matrix::new(slopes, hidden));
                let result = MatrixMut::new(second_weight, hidden);
                multiply_transposed(gradient_rows, active, result, Start::Result);
                let result = MatrixMut::new(first_weight, dim);
                multiply_transposed(slope_rows, normed, result, Start::Result);
                add_rows(gradient, second_bias);
                add_rows(slopes, first_bias);
                multiply(slope_rows, &layers.widening, MatrixMut::new(of_normed, dim), Start::Zero);
            }
            laps.end("MLP");
            standardise_gradient(normed, of_normed, scales, dim);
            add_kept(&kept, of_normed, result, image, |_| 1.);
            laps.end("norms");
        });
    }
}
