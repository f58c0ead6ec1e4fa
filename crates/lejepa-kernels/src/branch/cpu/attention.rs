//! The first half of a block: `y = x + factor[image] gamma proj(attention(qkv(norm(x))))`, of all tokens or
//! of the first of every image alone, which still looks at all.
//!
//! Kept: queries, keys and values, and what the heads made of them.

use rayon::prelude::*;

use super::super::{AttentionBranch, Images, Outputs};
use super::heads::{Heads, Values};
use super::rows::{add_kept, add_rows, add_up, gather, split, split_mut, standardise_kept};
use super::{KeptImage, NormedLinear, ScaledLinear};
use crate::gemm::{Matrix, MatrixMut, Panels, Start, multiply, multiply_transposed};
use crate::operation::{Joint, JointInputs};
use crate::profile::Laps;
use crate::scratch::with_scratch;
use crate::standardise::standardise_gradient;

pub(super) struct Attention {
    epsilon: f32,
    images: Images,
    heads: usize,
    outputs: Outputs,
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

/// What the backward pass needs; in every task the values of images that are not left out come first.
pub(super) struct Remembered {
    /// `(outputs, dim)`.
    queries: Vec<f32>,
    /// `(images * tokens, 2 dim)`.
    keys_and_values: Vec<f32>,
    /// `(outputs, dim)`.
    mixed: Vec<f32>,
}

/// How many values an image has.
#[derive(Clone, Copy)]
struct Sizes {
    dim: usize,
    /// Of its rows.
    image: usize,
    /// Of the rows that there are results of.
    outputs: usize,
    heads: Heads,
}

impl Sizes {
    /// The standardised rows of which there are queries.
    fn queries<'a>(&self, normed: &'a [f32]) -> Matrix<'a> {
        Matrix::new(normed, self.stride()).columns(0, self.dim)
    }

    fn queries_mut<'a>(&self, normed: &'a mut [f32]) -> MatrixMut<'a> {
        MatrixMut::new(normed, self.stride()).columns(0, self.dim)
    }

    /// Values from one query's row to the next.
    fn stride(&self) -> usize {
        self.image / self.heads.queries.max(1)
    }
}

impl Attention {
    pub(super) fn new(branch: &AttentionBranch<'_>) -> Self {
        let AttentionBranch { epsilon, ref images, heads, outputs, .. } = *branch;
        Self { epsilon, images: images.clone(), heads, outputs }
    }

    fn sizes(&self, dim: usize) -> Sizes {
        let tokens = self.images.tokens;
        let queries = match self.outputs {
            Outputs::All => tokens,
            Outputs::First => 1,
        };
        let heads = Heads { queries, tokens, heads: self.heads, head_dim: dim / self.heads };
        Sizes { dim, image: tokens * dim, outputs: queries * dim, heads }
    }

    /// Queries are scaled by it, in the layer that makes them.
    fn scale(&self, dim: usize) -> f32 {
        ((dim / self.heads) as f32).powf(-0.5)
    }
}

impl Joint for Attention {
    type Kept = Remembered;

    fn name(&self) -> &'static str {
        "attention-branch"
    }

    fn forward(&self, rows: &[f32], parameters: &[&[f32]]) -> (Vec<f32>, Remembered) {
        let (first, second) = layers(parameters);
        let dim = first.inputs();
        let folded = first.fold(dim, self.scale(dim));
        let (query_layer, key_value_layer) = (folded.forward(0..dim), folded.forward(dim..3 * dim));
        let (query_bias, key_value_bias) = folded.bias.split_at(dim);
        let (projection, second_bias) = second.forward();
        let sizes @ Sizes { image, outputs, heads, .. } = self.sizes(dim);
        let count = self.images.count();
        let mut ys = vec![0.; count * outputs];
        let mut remembered = Remembered {
            queries: vec![0.; count * outputs],
            keys_and_values: vec![0.; 2 * count * image],
            mixed: vec![0.; count * outputs],
        };
        let task = self.images.of_task();
        let tasks = ys.par_chunks_mut(task * outputs).zip(rows.par_chunks(task * image));
        let tasks = tasks.zip(remembered.queries.par_chunks_mut(task * outputs));
        let tasks = tasks.zip(remembered.keys_and_values.par_chunks_mut(2 * task * image));
        let tasks = tasks.zip(remembered.mixed.par_chunks_mut(task * outputs)).enumerate();
        tasks.with_max_len(1).for_each(|(index, ((((ys, xs), queries), keys_and_values), mixed))| {
            let images = xs.len() / image;
            let kept = self.images.kept(index * task, images);
            copy_outputs(xs, ys, sizes);
            let count = kept.len();
            let (queries, mixed) = (&mut queries[..count * outputs], &mut mixed[..count * outputs]);
            let keys_and_values = &mut keys_and_values[..2 * count * image];
            let lengths = [count * heads.tokens, count * image, count * outputs, heads.scratch()];
            let mut laps = Laps::start();
            with_scratch(lengths, |[scales, normed, changes, scratch]| {
                standardise_kept(&kept, xs, normed, scales, dim, self.epsilon);
                laps.end("norms");
                let result = MatrixMut::new(queries, dim);
                multiply(sizes.queries(normed), &query_layer, result, Start::Row(query_bias));
                let result = MatrixMut::new(keys_and_values, 2 * dim);
                multiply(Matrix::new(normed, dim), &key_value_layer, result, Start::Row(key_value_bias));
                laps.end("qkv");
                for image_index in 0..count {
                    let values = values(queries, keys_and_values, image_index, sizes);
                    let mixed = &mut mixed[image_index * outputs..][..outputs];
                    heads.forward(values, mixed, scratch);
                }
                laps.end("attention");
                let result = MatrixMut::new(changes, dim);
                multiply(Matrix::new(mixed, dim), &projection, result, Start::Row(&second_bias));
                add_kept(&kept, changes, ys, outputs, |kept| kept.factor);
                laps.end("attention output");
            });
        });
        (ys, remembered)
    }

    fn backward(&self, inputs: &JointInputs<'_>, kept: Remembered) -> (Option<Vec<f32>>, Vec<Vec<f32>>) {
        let JointInputs { rows, parameters, gradient, .. } = *inputs;
        let (first, second) = layers(parameters);
        let dim = first.inputs();
        let folded = first.fold(dim, self.scale(dim));
        let layers = Layers {
            queries: folded.backward(0..dim),
            keys_and_values: folded.backward(dim..3 * dim),
            projection: second.backward(),
        };
        let sizes @ Sizes { image, outputs, .. } = self.sizes(dim);
        let (task, of_sum) = (self.images.of_task(), self.images.of_sum());
        let mut result = vec![0.; rows.len()];
        let parts = result.par_chunks_mut(of_sum * image).zip(rows.par_chunks(of_sum * image));
        let parts = parts.zip(gradient.par_chunks(of_sum * outputs));
        let parts = parts.zip(kept.queries.par_chunks(of_sum * outputs));
        let parts = parts.zip(kept.keys_and_values.par_chunks(2 * of_sum * image));
        let parts = parts.zip(kept.mixed.par_chunks(of_sum * outputs)).enumerate();
        let lengths = [3 * dim * dim, 3 * dim, dim * dim, dim];
        let sums = parts.with_max_len(1).map(
            |(part, (((((result, xs), gradient), queries), keys_and_values), mixed))| {
                let mut sums = vec![0.; lengths.iter().sum()];
                let images = xs.len() / image;
                for first in (0..images).step_by(task) {
                    let last = images.min(first + task);
                    let rows = Rows {
                        kept: self.images.kept(part * of_sum + first, last - first),
                        xs: &xs[first * image..last * image],
                        gradient: &gradient[first * outputs..last * outputs],
                        queries: &queries[first * outputs..last * outputs],
                        keys_and_values: &keys_and_values[2 * first * image..2 * last * image],
                        mixed: &mixed[first * outputs..last * outputs],
                    };
                    let result = &mut result[first * image..last * image];
                    self.task_gradient(&layers, &rows, sizes, result, split_mut(&mut sums, lengths));
                }
                sums
            },
        );
        let [first_weight, first_bias, second_weight, second_bias] = split(add_up(sums.collect()), lengths);
        let of_first = first.unfold(first_weight, first_bias, dim, self.scale(dim));
        let of_second = second.unfold(second_weight, second_bias);
        (Some(result), of_first.into_iter().chain(of_second).collect())
    }
}

/// The layers as the backward pass needs them.
struct Layers {
    queries: Panels,
    keys_and_values: Panels,
    projection: Panels,
}

/// What a task is about.
struct Rows<'a> {
    kept: Vec<KeptImage>,
    xs: &'a [f32],
    gradient: &'a [f32],
    queries: &'a [f32],
    keys_and_values: &'a [f32],
    mixed: &'a [f32],
}

impl Attention {
    fn task_gradient(
        &self,
        layers: &Layers,
        rows: &Rows<'_>,
        sizes: Sizes,
        result: &mut [f32],
        sums: [&mut [f32]; 4],
    ) {
        let Sizes { dim, image, outputs, heads } = sizes;
        let [first_weight, first_bias, second_weight, second_bias] = sums;
        let (query_weight, key_value_weight) = first_weight.split_at_mut(dim * dim);
        let (query_bias, key_value_bias) = first_bias.split_at_mut(dim);
        add_outputs(rows.gradient, result, sizes);
        let count = rows.kept.len();
        let lengths = [
            count * heads.tokens,
            count * image,
            count * outputs,
            count * outputs,
            count * outputs,
            2 * count * image,
            count * image,
            heads.scratch(),
        ];
        let mut laps = Laps::start();
        with_scratch(
            lengths,
            |[scales, normed, gradient, of_mixed, of_queries, of_pairs, of_normed, scratch]| {
                standardise_kept(&rows.kept, rows.xs, normed, scales, dim, self.epsilon);
                laps.end("norms");
                gather(&rows.kept, rows.gradient, gradient, outputs);
                let gradient_rows = Matrix::new(gradient, dim);
                let mixed = Matrix::new(&rows.mixed[..count * outputs], dim);
                multiply(gradient_rows, &layers.projection, MatrixMut::new(of_mixed, dim), Start::Zero);
                multiply_transposed(gradient_rows, mixed, MatrixMut::new(second_weight, dim), Start::Result);
                add_rows(gradient, second_bias);
                laps.end("attention output");
                for image_index in 0..count {
                    let values = values(rows.queries, rows.keys_and_values, image_index, sizes);
                    heads.backward(
                        values,
                        &of_mixed[image_index * outputs..][..outputs],
                        &mut of_queries[image_index * outputs..][..outputs],
                        &mut of_pairs[2 * image_index * image..][..2 * image],
                        scratch,
                    );
                }
                laps.end("attention");
                let (query_rows, pair_rows) = (Matrix::new(of_queries, dim), Matrix::new(of_pairs, 2 * dim));
                let result_view = MatrixMut::new(query_weight, dim);
                multiply_transposed(query_rows, sizes.queries(normed), result_view, Start::Result);
                let result_view = MatrixMut::new(key_value_weight, dim);
                multiply_transposed(pair_rows, Matrix::new(normed, dim), result_view, Start::Result);
                add_rows(of_queries, query_bias);
                add_rows(of_pairs, key_value_bias);
                multiply(pair_rows, &layers.keys_and_values, MatrixMut::new(of_normed, dim), Start::Zero);
                multiply(query_rows, &layers.queries, sizes.queries_mut(of_normed), Start::Result);
                laps.end("qkv");
                standardise_gradient(normed, of_normed, scales, dim);
                add_kept(&rows.kept, of_normed, result, image, |_| 1.);
                laps.end("norms");
            },
        );
    }
}

/// Those of one image.
fn values<'a>(queries: &'a [f32], keys_and_values: &'a [f32], image: usize, sizes: Sizes) -> Values<'a> {
    Values {
        queries: &queries[image * sizes.outputs..][..sizes.outputs],
        keys_and_values: &keys_and_values[2 * image * sizes.image..][..2 * sizes.image],
    }
}

/// The rows of which there are results.
fn copy_outputs(rows: &[f32], outputs: &mut [f32], sizes: Sizes) {
    let images = outputs.chunks_exact_mut(sizes.outputs).zip(rows.chunks_exact(sizes.image));
    images.for_each(|(outputs, rows)| outputs.copy_from_slice(&rows[..sizes.outputs]));
}

/// Adds to the rows of which there are results.
fn add_outputs(outputs: &[f32], rows: &mut [f32], sizes: Sizes) {
    for (outputs, rows) in outputs.chunks_exact(sizes.outputs).zip(rows.chunks_exact_mut(sizes.image)) {
        rows.iter_mut().zip(outputs).for_each(|(row, output)| *row += output);
    }
}
