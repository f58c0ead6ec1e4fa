//! A linear layer on the CPU.

use rayon::prelude::*;

use super::LinearActivation;
use crate::gelu::{activate, slope_times};
use crate::gemm::{Matrix, MatrixMut, Panels, Start, multiply, multiply_transposed};
use crate::operation::{Joint, JointInputs};
use crate::sums::sum_rows;

/// Rows of a task at most: they stay in a core's cache.
const MAX_ROWS: usize = 112;
/// Rows of a task at least: what fills the registers.
const MIN_ROWS: usize = 14;
/// Rows whose products are added to the gradient of the weight at a time.
const DEPTH: usize = 256;

pub(super) struct Linear {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) activation: LinearActivation,
}

/// Rows of a task; where they are cut changes nothing in a result.
fn rows_of_task(rows: usize) -> usize {
    rows.div_ceil(rayon::current_num_threads()).clamp(MIN_ROWS, MAX_ROWS)
}

impl Joint for Linear {
    /// The outputs before the activation, if there is one.
    type Kept = Vec<f32>;

    fn name(&self) -> &'static str {
        "linear"
    }

    fn forward(&self, rows: &[f32], parameters: &[&[f32]]) -> (Vec<f32>, Vec<f32>) {
        let Self { inputs, outputs, activation } = *self;
        let count = rows.len() / inputs.max(1);
        let layer = Panels::of_transpose(Matrix::new(parameters[0], inputs));
        let start = parameters.get(1).map_or(Start::Zero, |bias| Start::Row(bias));
        let task = rows_of_task(count);
        let product = |xs: &[f32], ys: &mut [f32]| {
            multiply(Matrix::new(xs, inputs), &layer, MatrixMut::new(ys, outputs), start);
        };
        let mut ys = vec![0.; count * outputs];
        let tasks = ys.par_chunks_mut(task * outputs).zip(rows.par_chunks(task * inputs));
        match activation {
            LinearActivation::None => {
                tasks.for_each(|(ys, xs)| product(xs, ys));
                (ys, Vec::new())
            }
            LinearActivation::Gelu => {
                let mut before = vec![0.; count * outputs];
                tasks.zip(before.par_chunks_mut(task * outputs)).for_each(|((ys, xs), before)| {
                    product(xs, before);
                    activate(before, ys);
                });
                (ys, before)
            }
        }
    }

    fn backward(&self, inputs: &JointInputs<'_>, before: Vec<f32>) -> (Option<Vec<f32>>, Vec<Vec<f32>>) {
        match self.activation {
            LinearActivation::None => self.gradients(inputs, inputs.gradient),
            LinearActivation::Gelu => {
                let mut gradient = before;
                let chunk = MAX_ROWS * self.outputs;
                let chunks = gradient.par_chunks_mut(chunk).zip(inputs.gradient.par_chunks(chunk));
                chunks.for_each(|(values, of_result)| slope_times(of_result, values));
                self.gradients(inputs, &gradient)
            }
        }
    }
}

impl Linear {
    /// From the gradient of the outputs before the activation.
    fn gradients(&self, given: &JointInputs<'_>, gradient: &[f32]) -> (Option<Vec<f32>>, Vec<Vec<f32>>) {
        let Self { inputs, outputs, .. } = *self;
        let weight = Matrix::new(given.parameters[0], inputs);
        let of_rows = given.of_rows_is_needed.then(|| {
            let layer = Panels::new(weight);
            let mut of_rows = vec![0.; given.rows.len()];
            let task = rows_of_task(given.rows.len() / inputs.max(1));
            let tasks = of_rows.par_chunks_mut(task * inputs).zip(gradient.par_chunks(task * outputs));
            tasks.for_each(|(of_rows, gradient)| {
                let result = MatrixMut::new(of_rows, inputs);
                multiply(Matrix::new(gradient, outputs), &layer, result, Start::Zero);
            });
            of_rows
        });
        let mut of_parameters = vec![self.weight_gradient(given.rows, gradient)];
        if given.parameters.len() > 1 {
            of_parameters.push(sum_rows(gradient, outputs));
        }
        (of_rows, of_parameters)
    }

    /// Every entry is summed by one thread, in the order of the rows.
    fn weight_gradient(&self, rows: &[f32], gradient: &[f32]) -> Vec<f32> {
        let Self { inputs, outputs, .. } = *self;
        let mut of_weight = vec![0.; outputs * inputs];
        let task = rows_of_task(outputs.div_ceil(2));
        of_weight.par_chunks_mut(task * inputs).enumerate().for_each(|(index, of_weight)| {
            let count = of_weight.len() / inputs;
            for (rows, gradient) in rows.chunks(DEPTH * inputs).zip(gradient.chunks(DEPTH * outputs)) {
                let gradient = Matrix::new(gradient, outputs).columns(index * task, count);
                let result = MatrixMut::new(of_weight, inputs);
                multiply_transposed(gradient, Matrix::new(rows, inputs), result, Start::Result);
            }
        });
        of_weight
    }
}
