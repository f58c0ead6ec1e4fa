//! A block of ConvNeXt V2: `y = x + factor[image] fc2(grn(gelu(fc1(norm(conv_dw(x))))))`.
//!
//! Kept: the rows before the norm, and the hidden rows before the activation.

use rayon::prelude::*;

use super::super::Images;
use super::rows::{add_rows, add_up, split, split_mut};
use super::{MAX_SUMS, MIN_ROWS_OF_A_SUM, NormedLinear, ScaledLinear};
use crate::Windows;
use crate::depthwise::{convolve_image, correlate_image};
use crate::gelu::{activate, slope_times};
use crate::gemm::{Matrix, MatrixMut, Panels, Start, multiply, multiply_transposed};
use crate::operation::{Joint, JointInputs};
use crate::profile::Laps;
use crate::response_norm::{respond, respond_gradient};
use crate::scratch::with_scratch;
use crate::standardise::{standardise, standardise_gradient};

pub(crate) struct Spatial {
    pub(crate) windows: Windows,
    pub(crate) epsilon: f32,
    pub(crate) images: Images,
}

/// The parameters by their places.
#[derive(Clone, Copy)]
struct Layers<'a> {
    /// `(dim, taps)`.
    depthwise: &'a [f32],
    depthwise_bias: &'a [f32],
    first: NormedLinear<'a>,
    response_weight: &'a [f32],
    response_bias: &'a [f32],
    second: ScaledLinear<'a>,
}

impl<'a> Layers<'a> {
    fn new(parameters: &[&'a [f32]]) -> Self {
        Self {
            depthwise: parameters[0],
            depthwise_bias: parameters[1],
            first: NormedLinear {
                norm_weight: parameters[2],
                norm_bias: parameters[3],
                weight: parameters[4],
                bias: parameters[5],
            },
            response_weight: parameters[6],
            response_bias: parameters[7],
            second: ScaledLinear { weight: parameters[8], bias: parameters[9], gamma: None },
        }
    }

    fn dim(&self) -> usize {
        self.depthwise_bias.len()
    }

    fn hidden(&self) -> usize {
        self.response_weight.len()
    }
}

/// From `(rows, columns)` to `(columns, rows)`.
fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| values.iter().skip(column).step_by(columns).copied()).collect()
}

pub(crate) struct Remembered {
    /// What the depthwise convolution gives: `(images * places, dim)`.
    spatial: Vec<f32>,
    /// `(images * places, hidden)`.
    hidden: Vec<f32>,
}

impl Joint for Spatial {
    type Kept = Remembered;

    fn name(&self) -> &'static str {
        "spatial-branch"
    }

    fn forward(&self, rows: &[f32], parameters: &[&[f32]]) -> (Vec<f32>, Remembered) {
        let layers = Layers::new(parameters);
        let (dim, hidden) = (layers.dim(), layers.hidden());
        let kernel = transposed(layers.depthwise, self.windows.taps()); // (taps, dim)
        let folded = layers.first.fold(0, 1.);
        let widening = folded.forward(0..hidden);
        let (narrowing, second_bias) = layers.second.forward();
        let places = self.images.tokens;
        let (task, image) = (self.images.of_task(), places * dim);
        let mut ys = vec![0.; rows.len()];
        let mut kept =
            Remembered { spatial: vec![0.; rows.len()], hidden: vec![0.; rows.len() / dim * hidden] };
        let tasks = ys.par_chunks_mut(task * image).zip(rows.par_chunks(task * image));
        let tasks = tasks.zip(kept.spatial.par_chunks_mut(task * image));
        let tasks = tasks.zip(kept.hidden.par_chunks_mut(task * places * hidden));
        let tasks = tasks.zip(self.images.factors.par_chunks(task));
        tasks.with_max_len(1).for_each(|((((ys, xs), spatial), hidden_rows), factors)| {
            let mut laps = Laps::start();
            for (spatial, xs) in spatial.chunks_exact_mut(image).zip(xs.chunks_exact(image)) {
                convolve_image(&self.windows, dim, xs, &kernel, spatial);
                for row in spatial.chunks_exact_mut(dim) {
                    row.iter_mut().zip(layers.depthwise_bias).for_each(|(value, bias)| *value += bias);
                }
            }
            laps.end("depthwise");
            let count = xs.len() / dim;
            with_scratch([count * dim, count, count * hidden], |[normed, scales, active]| {
                standardise(spatial, normed, scales, dim, self.epsilon);
                laps.end("norms");
                let result = MatrixMut::new(hidden_rows, hidden);
                multiply(Matrix::new(normed, dim), &widening, result, Start::Row(&folded.bias));
                activate(hidden_rows, active);
                laps.end("MLP");
                for image in active.chunks_exact_mut(places * hidden) {
                    respond(image, layers.response_weight, layers.response_bias);
                }
                laps.end("norms");
                let changes = MatrixMut::new(normed, dim);
                multiply(Matrix::new(active, hidden), &narrowing, changes, Start::Row(&second_bias));
                let images = ys.chunks_exact_mut(image).zip(xs.chunks_exact(image));
                for ((ys, xs), (changes, factor)) in images.zip(normed.chunks_exact(image).zip(factors)) {
                    let values = ys.iter_mut().zip(xs).zip(changes);
                    values.for_each(|((y, x), change)| *y = x + factor * change);
                }
                laps.end("MLP");
            });
        });
        (ys, kept)
    }

    fn backward(&self, inputs: &JointInputs<'_>, mut kept: Remembered) -> (Option<Vec<f32>>, Vec<Vec<f32>>) {
        let JointInputs { rows, parameters, gradient, .. } = *inputs;
        let layers = Layers::new(parameters);
        let (dim, hidden, taps) = (layers.dim(), layers.hidden(), self.windows.taps());
        let folded = layers.first.fold(0, 1.);
        let mut turned = transposed(layers.depthwise, taps); // (taps, dim)
        turned.reverse(); // the taps, and the channels of each
        turned.chunks_exact_mut(dim).for_each(<[f32]>::reverse);
        let backward_layers = BackwardLayers {
            layers,
            turned,
            widening: folded.backward(0..hidden),
            narrowing: layers.second.backward(),
        };
        let places = self.images.tokens;
        let (task, image, hidden_image) = (self.images.of_task(), places * dim, places * hidden);
        let images = self.images.factors.len();
        // Sums that do not depend on the number of threads, and work for two at least.
        let sums = (images * places / MIN_ROWS_OF_A_SUM).clamp(2, MAX_SUMS);
        let of_sum = images.div_ceil(sums).next_multiple_of(task).max(1);
        let lengths = [taps * dim, dim, hidden * dim, hidden, hidden, hidden, hidden * dim, dim];
        let mut result = vec![0.; rows.len()];
        let parts = result.par_chunks_mut(of_sum * image).zip(rows.par_chunks(of_sum * image));
        let parts = parts.zip(gradient.par_chunks(of_sum * image));
        let parts = parts.zip(kept.spatial.par_chunks(of_sum * image));
        let parts = parts.zip(kept.hidden.par_chunks_mut(of_sum * hidden_image));
        let parts = parts.zip(self.images.factors.par_chunks(of_sum)).with_max_len(1);
        let sums = parts.map(|(((((result, xs), gradient), spatial), hidden_rows), factors)| {
            let mut sums = vec![0.; lengths.iter().sum()];
            let tasks = result.chunks_mut(task * image).zip(xs.chunks(task * image));
            let tasks = tasks.zip(gradient.chunks(task * image)).zip(spatial.chunks(task * image));
            let tasks = tasks.zip(hidden_rows.chunks_mut(task * hidden_image)).zip(factors.chunks(task));
            for (((((result, xs), gradient), spatial), hidden_rows), factors) in tasks {
                let task = Task { xs, gradient, spatial, hidden_rows, factors };
                self.task_gradient(&backward_layers, task, result, split_mut(&mut sums, lengths));
            }
            sums
        });
        let [kernel, kernel_bias, weight, bias, response, response_bias, second, second_bias] =
            split(add_up(sums.collect()), lengths);
        let of_first = layers.first.unfold(weight, bias, 0, 1.);
        let mut of_parameters = vec![transposed(&kernel, dim), kernel_bias];
        of_parameters.extend(of_first);
        of_parameters.extend([response, response_bias, second, second_bias]);
        (Some(result), of_parameters)
    }
}

/// The layers as the backward pass needs them.
struct BackwardLayers<'a> {
    layers: Layers<'a>,
    /// The depthwise kernel turned by half a turn.
    turned: Vec<f32>,
    widening: Panels,
    narrowing: Panels,
}

/// A few images.
struct Task<'a> {
    xs: &'a [f32],
    gradient: &'a [f32],
    spatial: &'a [f32],
    hidden_rows: &'a mut [f32],
    factors: &'a [f32],
}

impl Spatial {
    fn task_gradient(
        &self,
        layers: &BackwardLayers<'_>,
        task: Task<'_>,
        result: &mut [f32],
        sums: [&mut [f32]; 8],
    ) {
        let BackwardLayers { layers, turned, widening, narrowing } = layers;
        let Task { xs, gradient, spatial, hidden_rows, factors } = task;
        let [kernel, kernel_bias, weight, bias, response, response_bias, second, second_bias] = sums;
        let (dim, hidden) = (layers.dim(), layers.hidden());
        let (image, hidden_image) = (self.images.tokens * dim, self.images.tokens * hidden);
        let count = xs.len() / dim;
        let lengths = [count, count * dim, count * dim, count * hidden, count * hidden];
        let mut laps = Laps::start();
        with_scratch(lengths, |[scales, normed, of_spatial, active, slopes]| {
            let scaled = of_spatial; // until it is what it is called
            for ((scaled, gradient), factor) in
                scaled.chunks_exact_mut(image).zip(gradient.chunks_exact(image)).zip(factors)
            {
                scaled.iter_mut().zip(gradient).for_each(|(to, from)| *to = factor * from);
            }
            multiply(Matrix::new(scaled, dim), narrowing, MatrixMut::new(slopes, hidden), Start::Zero);
            activate(hidden_rows, active);
            laps.end("MLP");
            let images = active.chunks_exact_mut(hidden_image).zip(slopes.chunks_exact_mut(hidden_image));
            for (active, slopes) in images {
                // The rows become those behind the norm, the slopes those before it.
                let parameters = [layers.response_weight, layers.response_bias];
                respond_gradient(parameters, active, slopes, [response, response_bias]);
            }
            laps.end("norms");
            let rows = Matrix::new(scaled, dim);
            let result_of_second = MatrixMut::new(second, hidden);
            multiply_transposed(rows, Matrix::new(active, hidden), result_of_second, Start::Result);
            add_rows(scaled, second_bias);

            slope_times(slopes, hidden_rows);
            laps.end("MLP");
            standardise(spatial, normed, scales, dim, self.epsilon);
            laps.end("norms");
            let slopes = Matrix::new(hidden_rows, hidden);
            let result_of_first = MatrixMut::new(weight, dim);
            multiply_transposed(slopes, Matrix::new(normed, dim), result_of_first, Start::Result);
            let of_spatial = scaled;
            multiply(slopes, widening, MatrixMut::new(of_spatial, dim), Start::Zero);
            add_rows(hidden_rows, bias);
            laps.end("MLP");
            standardise_gradient(normed, of_spatial, scales, dim);
            laps.end("norms");
            add_rows(of_spatial, kernel_bias);
            let images = result.chunks_exact_mut(image).zip(of_spatial.chunks_exact(image));
            for ((result, of_spatial), xs) in images.zip(xs.chunks_exact(image)) {
                convolve_image(&self.windows, dim, of_spatial, turned, result);
                correlate_image(&self.windows, dim, xs, of_spatial, kernel);
            }
            result.iter_mut().zip(gradient).for_each(|(result, gradient)| *result += gradient);
            laps.end("depthwise");
        });
    }
}
