//! Batch normalisation per column with the batch's own statistics, and a ReLU behind it if asked.
//!
//! With `n = (x - mean) / sqrt(var + eps)` and `g` the gradient of `y = n * weight + bias`:
//!
//! ```text
//! d bias = sum g,   d weight = sum g n
//! d x = (g - mean(g) - n mean(g n)) * weight / sqrt(var + eps)
//! ```

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;

/// What follows the normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    Identity,
    Relu,
}

/// Normalised rows and the statistics they were normalised with, the biased variance: `(dim)` each.
pub(crate) struct Normalised {
    pub(crate) ys: Tensor,
    pub(crate) mean: Tensor,
    pub(crate) variance: Tensor,
}

/// # Shapes
/// - `xs` and result: `(samples, dim)`; `weight` and `bias`: `(dim)`
pub(crate) fn batch_norm(
    xs: &Tensor,
    [weight, bias]: [&Tensor; 2],
    epsilon: f64,
    activation: Activation,
) -> Result<Normalised> {
    if !super::is_fused(xs) {
        let mean = xs.mean(0)?;
        let variance = xs.broadcast_sub(&mean)?.sqr()?.mean(0)?;
        let ys = normalise(xs, [&mean, &variance], [weight, bias], epsilon)?;
        let ys = if activation == Activation::Relu { ys.relu()? } else { ys };
        return Ok(Normalised { ys, mean: mean.detach(), variance: variance.detach() });
    }
    let xs = xs.contiguous()?;
    let moments = xs.detach().apply_op1_no_bwd(&Moments)?; // (2, dim)
    let (mean, variance) = (moments.get(0)?, moments.get(1)?);
    let scale = variance.to_vec1::<f32>()?.iter().map(|value| 1. / (value + epsilon as f32).sqrt()).collect();
    let columns = Columns {
        mean: mean.to_vec1()?,
        scale,
        weight: weight.to_vec1()?,
        bias: bias.to_vec1()?,
        activation,
    };
    let ys = xs.apply_op3(weight, bias, Normalise(Arc::new(columns)))?;
    Ok(Normalised { ys, mean, variance })
}

/// `(x - mean) / sqrt(variance + epsilon) * weight + bias` with elementary operations.
pub(crate) fn normalise(
    xs: &Tensor,
    [mean, variance]: [&Tensor; 2],
    [weight, bias]: [&Tensor; 2],
    epsilon: f64,
) -> Result<Tensor> {
    let scale = ((variance + epsilon)?.sqrt()?.recip()? * weight)?;
    xs.broadcast_sub(mean)?.broadcast_mul(&scale)?.broadcast_add(bias)
}

/// Mean and biased variance of every column, one after the other.
struct Moments;

impl CustomOp1 for Moments {
    fn name(&self) -> &'static str {
        "batch-moments"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let (_samples, dim) = layout.shape().dims2()?;
        let parts: Vec<Vec<f32>> =
            xs.par_chunks(dim * super::ROWS_PER_TASK).map(|rows| part_moments(rows, dim)).collect();
        // Joined in order by one thread: the same for any number of threads.
        let (mut count, mut mean, mut squares) = (0., vec![0f64; dim], vec![0f64; dim]);
        for (part, rows) in parts.iter().zip(xs.chunks(dim * super::ROWS_PER_TASK)) {
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
struct Columns {
    mean: Vec<f32>,
    /// `1 / sqrt(var + eps)`.
    scale: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    activation: Activation,
}

impl Columns {
    /// Calls `visit` with every value's normalised form and the gradient that passes the activation.
    #[inline(always)]
    fn visit(&self, xs: &[f32], gradients: &[f32], mut visit: impl FnMut(usize, usize, f32, f32)) {
        let dim = self.mean.len();
        let relu = self.activation == Activation::Relu;
        for (row, (xs, gradients)) in xs.chunks_exact(dim).zip(gradients.chunks_exact(dim)).enumerate() {
            let affine = self.weight.iter().zip(&self.bias);
            let columns = self.mean.iter().zip(&self.scale).zip(affine);
            let values = xs.iter().zip(gradients).zip(columns);
            for (column, ((x, gradient), ((mean, scale), (weight, bias)))) in values.enumerate() {
                let normalised = (x - mean) * scale;
                let cut = relu && normalised * weight + bias <= 0.;
                visit(row, column, normalised, if cut { 0. } else { *gradient });
            }
        }
    }
}

struct Normalise(Arc<Columns>);

impl CustomOp3 for Normalise {
    fn name(&self) -> &'static str {
        "batch-norm"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        _weight: &CpuStorage,
        _weight_layout: &Layout,
        _bias: &CpuStorage,
        _bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let Columns { mean, scale, weight, bias, activation } = &*self.0;
        let relu = *activation == Activation::Relu;
        let dim = mean.len();
        let mut ys = vec![0.; xs.len()];
        let chunk = dim * super::ROWS_PER_TASK;
        ys.par_chunks_mut(chunk).zip(xs.par_chunks(chunk)).for_each(|(ys, xs)| {
            for (ys, xs) in ys.chunks_exact_mut(dim).zip(xs.chunks_exact(dim)) {
                let columns = mean.iter().zip(scale).zip(weight.iter().zip(bias));
                for ((y, x), ((mean, scale), (weight, bias))) in ys.iter_mut().zip(xs).zip(columns) {
                    let value = (x - mean) * scale * weight + bias;
                    *y = if relu && value <= 0. { 0. } else { value };
                }
            }
        });
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(
        &self,
        xs: &Tensor,
        _weight: &Tensor,
        _bias: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (xs, gradient) = (xs.detach(), gradient.detach().contiguous()?);
        let of_affine = xs.apply_op2_no_bwd(&gradient, &AffineGradient(self.0.clone()))?; // (2, dim)
        let (of_weight, of_bias) = (of_affine.get(0)?, of_affine.get(1)?);
        let columns = self.0.clone();
        let input = InputGradient { columns, of_weight: of_weight.to_vec1()?, of_bias: of_bias.to_vec1()? };
        let of_xs = xs.apply_op2_no_bwd(&gradient, &input)?;
        Ok((Some(of_xs), Some(of_weight), Some(of_bias)))
    }
}

/// The gradients of weight and bias, one after the other.
struct AffineGradient(Arc<Columns>);

impl CustomOp2 for AffineGradient {
    fn name(&self) -> &'static str {
        "batch-norm-affine-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let gradients = values(gradient_storage, gradient_layout)?;
        let dim = self.0.mean.len();
        let chunk = dim * super::ROWS_PER_TASK;
        // Collected in order and added up by one thread: the same sum for any number of threads.
        let partial_sums: Vec<Vec<f32>> = xs
            .par_chunks(chunk)
            .zip(gradients.par_chunks(chunk))
            .map(|(xs, gradients)| {
                let mut sums = vec![0.; 2 * dim];
                let (of_weight, of_bias) = sums.split_at_mut(dim);
                self.0.visit(xs, gradients, |_row, column, normalised, gradient| {
                    of_weight[column] += gradient * normalised;
                    of_bias[column] += gradient;
                });
                sums
            })
            .collect();
        Ok((CpuStorage::F32(super::add_up(&partial_sums, 2 * dim)), Shape::from((2, dim))))
    }
}

struct InputGradient {
    columns: Arc<Columns>,
    of_weight: Vec<f32>,
    of_bias: Vec<f32>,
}

impl CustomOp2 for InputGradient {
    fn name(&self) -> &'static str {
        "batch-norm-input-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let gradients = values(gradient_storage, gradient_layout)?;
        let dim = self.columns.mean.len();
        let share = dim as f32 / xs.len() as f32;
        let factor: Vec<f32> = self
            .columns
            .scale
            .iter()
            .zip(&self.columns.weight)
            .map(|(scale, weight)| scale * weight)
            .collect();
        let mut result = vec![0.; xs.len()];
        let chunk = dim * super::ROWS_PER_TASK;
        let inputs = xs.par_chunks(chunk).zip(gradients.par_chunks(chunk));
        result.par_chunks_mut(chunk).zip(inputs).for_each(|(result, (xs, gradients))| {
            self.columns.visit(xs, gradients, |row, column, normalised, gradient| {
                let centred = gradient - share * (self.of_bias[column] + normalised * self.of_weight[column]);
                result[row * dim + column] = factor[column] * centred;
            });
        });
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::*;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (samples, dim) in [(2, 3), (64, 5), (200, 7), (1000, 48)] {
            for activation in [Activation::Identity, Activation::Relu] {
                assert_fused_agrees(&[&[samples, dim], &[dim], &[dim]], |tensors| {
                    // A mean far from zero is where a careless variance loses its digits.
                    let xs = (&tensors[0] + 3.).unwrap();
                    batch_norm(&xs, [&tensors[1], &tensors[2]], 1e-5, activation).unwrap().ys
                });
            }
        }
    }
}
