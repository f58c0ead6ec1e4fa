//! `y = f(x W^T + b)` for every row, with `f` the identity or GELU.
//!
//! ```text
//! g = d y f'(x W^T + b)
//! d x = g W,   d W = g^T x,   d b = sum of the rows of g
//! ```

use crate::gemm::{Matrix, MatrixMut, Panels, Start, multiply, multiply_transposed};
use candle_core::{Result, Tensor};
use rayon::prelude::*;

use super::gelu::{activate, slope_times};
use super::joint::{Inputs, Joint, apply};

/// Rows of a task at most: they stay in a core's cache.
const ROWS: usize = 112;
/// Rows of a task at least: what fills the registers.
const FEWEST_ROWS: usize = 14;
/// Rows whose products are added to the gradient of the weight at a time.
const DEPTH: usize = 256;

/// What happens to the outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinearActivation {
    /// Nothing.
    None,
    /// The exact GELU.
    Gelu,
}

/// # Shapes
/// - `xs`: `(rows, inputs)`; `weight`: `(outputs, inputs)`; `bias`: `(outputs)`
/// - result: `(rows, outputs)`
pub fn linear(
    xs: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    activation: LinearActivation,
) -> Result<Tensor> {
    if super::is_fused(xs) {
        let parameters: Vec<&Tensor> = std::iter::once(weight).chain(bias).collect();
        let (outputs, inputs) = weight.dims2()?;
        return apply(xs, &parameters, outputs, Linear { inputs, outputs, activation });
    }
    let ys = xs.matmul(&weight.t()?)?;
    let ys = match bias {
        Some(bias) => ys.broadcast_add(bias)?,
        None => ys,
    };
    match activation {
        LinearActivation::None => Ok(ys),
        LinearActivation::Gelu => ys.gelu_erf(),
    }
}

struct Linear {
    inputs: usize,
    outputs: usize,
    activation: LinearActivation,
}

/// Rows of a task; where they are cut changes nothing in a result.
fn rows_of_task(rows: usize) -> usize {
    rows.div_ceil(rayon::current_num_threads()).clamp(FEWEST_ROWS, ROWS)
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

    fn backward(&self, inputs: &Inputs<'_>, before: Vec<f32>) -> (Option<Vec<f32>>, Vec<Vec<f32>>) {
        match self.activation {
            LinearActivation::None => self.gradients(inputs, inputs.gradient),
            LinearActivation::Gelu => {
                let mut gradient = before;
                let chunk = ROWS * self.outputs;
                let chunks = gradient.par_chunks_mut(chunk).zip(inputs.gradient.par_chunks(chunk));
                chunks.for_each(|(values, of_result)| slope_times(of_result, values));
                self.gradients(inputs, &gradient)
            }
        }
    }
}

impl Linear {
    /// From the gradient of the outputs before the activation.
    fn gradients(&self, given: &Inputs<'_>, gradient: &[f32]) -> (Option<Vec<f32>>, Vec<Vec<f32>>) {
        let Self { inputs, outputs, .. } = *self;
        let weight = Matrix::new(given.parameters[0], inputs);
        let of_rows = given.of_rows_is_wanted.then(|| {
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

/// Partial sums of fixed rows, added up in their order.
fn sum_rows(rows: &[f32], columns: usize) -> Vec<f32> {
    let sums: Vec<Vec<f32>> = rows
        .par_chunks(super::ROWS_PER_TASK * columns)
        .map(|rows| {
            let mut sums = vec![0.; columns];
            for row in rows.chunks_exact(columns) {
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            sums
        })
        .collect();
    super::add_up(&sums, columns)
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::*;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 7), (130, 33, 48), (600, 64, 17), (29, 192, 200)] {
            for activation in [LinearActivation::None, LinearActivation::Gelu] {
                assert_fused_agrees(&[&[rows, inputs], &[outputs, inputs], &[outputs]], |tensors| {
                    linear(&tensors[0], &tensors[1], Some(&tensors[2]), activation).unwrap()
                });
            }
            assert_fused_agrees(&[&[rows, inputs], &[outputs, inputs]], |tensors| {
                linear(&tensors[0], &tensors[1], None, LinearActivation::None).unwrap()
            });
        }
    }
}
