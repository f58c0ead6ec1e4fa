//! Batch normalisation per column with the batch's own statistics, and a ReLU behind it if asked.
//!
//! With `n = (x - mean) / sqrt(var + eps)` and `g` the gradient of `y = n * weight + bias`:
//!
//! ```text
//! d bias = sum g,   d weight = sum g n
//! d x = (g - mean(g) - n mean(g n)) * weight / sqrt(var + eps)
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, CustomOp3, Error, Layout, Result, Shape, Storage, Tensor,
};
use rayon::prelude::*;

use super::contiguous::values;
use super::convolve::{convolve, convolve_gradients};
use super::filled::filled;
use super::wide::wide;
use super::window::Windows;
use crate::stopwatch::timed;

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
    let (columns, [mean, variance]) = Columns::new(&xs.detach(), [weight, bias], epsilon, activation)?;
    let ys = xs.apply_op3(weight, bias, Normalise(Arc::new(columns)))?;
    Ok(Normalised { ys, mean, variance })
}

/// The same behind a convolution, as one operation: Candle would set up and add a gradient in between.
///
/// # Shapes
/// - `rows`: `(images * input places, channels)`, f32 on the CPU
/// - `kernel`: `(dim, channels, taps)`; `weight` and `bias`: `(dim)`
/// - result: `(images * output places, dim)`
pub(crate) fn convolve_and_norm(
    rows: &Tensor,
    kernel: &Tensor,
    windows: &Windows,
    [weight, bias]: [&Tensor; 2],
    settings: (f64, Activation),
) -> Result<Normalised> {
    let (rows, kernel) = (rows.contiguous()?, kernel.contiguous()?);
    let xs = convolve(&rows.detach(), &kernel.detach(), windows)?;
    let (epsilon, activation) = settings;
    let norm = || Columns::new(&xs, [weight, bias], epsilon, activation);
    let (columns, [mean, variance]) = timed("norms", norm)?;
    let affine = Tensor::stack(&[weight, bias], 0)?; // (2, dim)
    let op = ConvolveAndNorm { windows: *windows, xs: Mutex::new(Some(xs)), columns: Arc::new(columns) };
    let ys = rows.apply_op3(&kernel, &affine, op)?;
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
        let parts: Vec<Vec<f32>> = (xs.par_chunks(dim * super::ROWS_PER_TASK))
            .map(|rows| {
                wide(
                    #[inline(always)]
                    || part_moments(rows, dim),
                )
            })
            .collect();
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
struct Columns {
    mean: Vec<f32>,
    /// `1 / sqrt(var + eps)`.
    scale: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    activation: Activation,
}

impl Columns {
    /// Of normalised rows, with their mean and biased variance.
    fn new(
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

    fn normalise(&self, xs: &[f32]) -> Vec<f32> {
        let Self { mean, scale, weight, bias, activation } = self;
        let relu = *activation == Activation::Relu;
        let dim = mean.len();
        let chunk = dim * super::ROWS_PER_TASK;
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
        let ys = self.0.normalise(values(storage, layout)?);
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
        let (of_xs, of_affine) = gradients(&self.0, &xs.detach(), &gradient.detach().contiguous()?)?;
        Ok((Some(of_xs), Some(of_affine.get(0)?), Some(of_affine.get(1)?)))
    }
}

/// Of rows before they were normalised, and of weight and bias: `(2, dim)`.
fn gradients(columns: &Arc<Columns>, xs: &Tensor, gradient: &Tensor) -> Result<(Tensor, Tensor)> {
    let of_affine = xs.apply_op2_no_bwd(gradient, &AffineGradient(columns.clone()))?; // (2, dim)
    let (of_weight, of_bias) = (of_affine.get(0)?.to_vec1()?, of_affine.get(1)?.to_vec1()?);
    let input = InputGradient { columns: columns.clone(), of_weight, of_bias };
    Ok((xs.apply_op2_no_bwd(gradient, &input)?, of_affine))
}

struct ConvolveAndNorm {
    windows: Windows,
    /// What the convolution gave, until the backward pass takes it.
    xs: Mutex<Option<Tensor>>,
    columns: Arc<Columns>,
}

impl CustomOp3 for ConvolveAndNorm {
    fn name(&self) -> &'static str {
        "convolve-and-norm"
    }

    fn cpu_fwd(
        &self,
        _rows: &CpuStorage,
        _rows_layout: &Layout,
        _kernel: &CpuStorage,
        _kernel_layout: &Layout,
        _affine: &CpuStorage,
        _affine_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = self.xs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((storage, layout)) = xs.as_ref().map(Tensor::storage_and_layout) else {
            candle_core::bail!("applied twice")
        };
        let Storage::Cpu(storage) = &*storage else { candle_core::bail!("a fused operation off the CPU") };
        let ys = timed("norms", || Ok::<_, Error>(self.columns.normalise(values(storage, layout)?)))?;
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(
        &self,
        rows: &Tensor,
        kernel: &Tensor,
        _affine: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.detach().contiguous()?;
        let xs = self.xs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let xs = match xs {
            Some(xs) => xs,
            // For those who go back a second time.
            None => convolve(&rows.detach(), &kernel.detach(), &self.windows)?,
        };
        let (of_xs, of_affine) = timed("norms", || gradients(&self.columns, &xs, &gradient))?;
        drop(xs);
        let (of_rows, of_kernel) = convolve_gradients(rows, kernel, &of_xs, &self.windows)?;
        Ok((of_rows, Some(of_kernel), Some(of_affine)))
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
                wide(
                    #[inline(always)]
                    || {
                        for (xs, gradients) in xs.chunks_exact(dim).zip(gradients.chunks_exact(dim)) {
                            let sums = of_weight.iter_mut().zip(of_bias.iter_mut());
                            for ((of_weight, of_bias), (normalised, gradient)) in
                                sums.zip(self.0.row(xs, gradients))
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
        let chunk = dim * super::ROWS_PER_TASK;
        let result = filled(xs.len(), chunk, |index, result| {
            let (xs, gradients) = (&xs[index * chunk..], &gradients[index * chunk..]);
            wide(
                #[inline(always)]
                || {
                    let rows = xs.chunks_exact(dim).zip(gradients.chunks_exact(dim));
                    for (result, (xs, gradients)) in result.chunks_exact_mut(dim).zip(rows) {
                        let columns = factor.iter().zip(&self.of_weight).zip(&self.of_bias);
                        let values = columns.zip(self.columns.row(xs, gradients));
                        for (result, (((factor, of_weight), of_bias), (normalised, gradient))) in
                            result.iter_mut().zip(values)
                        {
                            *result = factor * (gradient - share * (of_bias + normalised * of_weight));
                        }
                    }
                },
            );
        });
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::super::window::Window;
    use super::*;
    use crate::ImageSize;

    #[test]
    fn behind_a_convolution_it_agrees_with_one_after_the_other() {
        let window = Window { kernel: 3, stride: 2, padding: 1 };
        let windows = Windows::new(window, 3, ImageSize { height: 5, width: 8 }).unwrap();
        for activation in [Activation::Identity, Activation::Relu] {
            assert_fused_agrees(&[&[3 * 40, 10], &[7, 10, 9], &[7], &[7]], |tensors| {
                let affine = [&tensors[2], &tensors[3]];
                if crate::ops::is_fused(&tensors[0]) {
                    let settings = (1e-5, activation);
                    let ys = convolve_and_norm(&tensors[0], &tensors[1], &windows, affine, settings);
                    let ys = ys.unwrap().ys;
                    // A second pass back has to do without what the first has taken.
                    ys.sum_all().unwrap().backward().unwrap();
                    return ys;
                }
                let xs = convolve(&tensors[0], &tensors[1], &windows).unwrap();
                batch_norm(&xs, affine, 1e-5, activation).unwrap().ys
            });
        }
    }

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
