//! Layer normalisation over the last axis, forward and backward in one pass each.
//!
//! With `n = (x - mean) / sqrt(var + eps)` and `g` the gradient of `y = n * weight + bias`:
//!
//! ```text
//! d bias = sum g,   d weight = sum g n
//! d x = (h - mean(h) - n mean(h n)) / sqrt(var + eps),   h = g * weight
//! ```

use candle_core::{CpuStorage, CustomOp2, CustomOp3, D, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;

/// # Shapes
/// - `xs` and result: `(.., dim)`; `weight` and `bias`: `(dim)`
pub fn layer_norm(xs: &Tensor, weight: &Tensor, bias: &Tensor, epsilon: f32) -> Result<Tensor> {
    if super::is_fused(xs) {
        xs.contiguous()?.apply_op3(weight, bias, LayerNorm { epsilon })
    } else {
        candle_nn::ops::layer_norm_slow(xs, weight, bias, epsilon)
    }
}

struct LayerNorm {
    epsilon: f32,
}

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

impl CustomOp3 for LayerNorm {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        weight_storage: &CpuStorage,
        weight_layout: &Layout,
        bias_storage: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let weight = values(weight_storage, weight_layout)?;
        let bias = values(bias_storage, bias_layout)?;
        let dim = weight.len();
        let mut ys = vec![0.; xs.len()];
        let chunk = dim * super::ROWS_PER_TASK;
        ys.par_chunks_mut(chunk).zip(xs.par_chunks(chunk)).for_each(|(ys, xs)| {
            for (ys, xs) in ys.chunks_exact_mut(dim).zip(xs.chunks_exact(dim)) {
                let (mean, scale) = moments(xs, self.epsilon);
                for (((y, x), weight), bias) in ys.iter_mut().zip(xs).zip(weight).zip(bias) {
                    *y = (x - mean) * scale * weight + bias;
                }
            }
        });
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(
        &self,
        xs: &Tensor,
        weight: &Tensor,
        _bias: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (xs, weight, gradient) = (xs.detach(), weight.detach(), gradient.detach().contiguous()?);
        let input = InputGradient { epsilon: self.epsilon };
        let of_xs = xs.apply_op3_no_bwd(&weight, &gradient, &input)?;
        let of_affine = xs.apply_op2_no_bwd(&gradient, &AffineGradient { epsilon: self.epsilon })?; // (2, dim)
        Ok((Some(of_xs), Some(of_affine.get(0)?), Some(of_affine.get(1)?)))
    }
}

struct InputGradient {
    epsilon: f32,
}

impl CustomOp3 for InputGradient {
    fn name(&self) -> &'static str {
        "layer-norm-input-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        weight_storage: &CpuStorage,
        weight_layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let weight = values(weight_storage, weight_layout)?;
        let gradients = values(gradient_storage, gradient_layout)?;
        let dim = weight.len();
        let mut result = vec![0.; xs.len()];
        let chunk = dim * super::ROWS_PER_TASK;
        let inputs = xs.par_chunks(chunk).zip(gradients.par_chunks(chunk));
        result.par_chunks_mut(chunk).zip(inputs).for_each(|(result, (xs, gradients))| {
            let rows = xs.chunks_exact(dim).zip(gradients.chunks_exact(dim));
            for (result, (xs, gradients)) in result.chunks_exact_mut(dim).zip(rows) {
                let (mean, scale) = moments(xs, self.epsilon);
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
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

/// The gradients of weight and bias, one after the other.
struct AffineGradient {
    epsilon: f32,
}

impl CustomOp2 for AffineGradient {
    fn name(&self) -> &'static str {
        "layer-norm-affine-gradient"
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
        let dim = layout.shape().dim(D::Minus1)?;
        let chunk = dim * super::ROWS_PER_TASK;
        // Collected in order and added up by one thread: the same sum for any number of threads.
        let partial_sums: Vec<Vec<f32>> = xs
            .par_chunks(chunk)
            .zip(gradients.par_chunks(chunk))
            .map(|(xs, gradients)| {
                let mut sums = vec![0.; 2 * dim];
                let (of_weight, of_bias) = sums.split_at_mut(dim);
                for (xs, gradients) in xs.chunks_exact(dim).zip(gradients.chunks_exact(dim)) {
                    let (mean, scale) = moments(xs, self.epsilon);
                    let sums = of_weight.iter_mut().zip(of_bias.iter_mut());
                    for (((of_weight, of_bias), x), gradient) in sums.zip(xs).zip(gradients) {
                        *of_weight += gradient * (x - mean) * scale;
                        *of_bias += gradient;
                    }
                }
                sums
            })
            .collect();
        let total = super::add_up(&partial_sums, 2 * dim);
        Ok((CpuStorage::F32(total), Shape::from((2, dim))))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::super::agreement::random;
    use super::*;

    /// f32 against f64; values and gradients are of order one to ten.
    const TOLERANCE: f64 = 2e-5;

    fn all_gradients(dtype: DType, rows: usize, dim: usize) -> Vec<Tensor> {
        let variable =
            |shape: &[usize], seed| Var::from_tensor(&random(shape, seed).to_dtype(dtype).unwrap()).unwrap();
        let (xs, weight, bias) = (variable(&[rows, dim], 1), variable(&[dim], 2), variable(&[dim], 3));
        let target = random(&[rows, dim], 4).to_dtype(dtype).unwrap();
        let ys = layer_norm(&xs, &weight, &bias, 1e-6).unwrap();
        let gradients = (&ys * target).unwrap().sum_all().unwrap().backward().unwrap();
        let gradient = |variable: &Var| gradients.get(variable).unwrap().clone();
        vec![ys, gradient(&xs), gradient(&weight), gradient(&bias)]
    }

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (rows, dim) in [(1, 3), (7, 48), (200, 5), (130, 128)] {
            let fused = all_gradients(DType::F32, rows, dim);
            let composed = all_gradients(DType::F64, rows, dim);
            for (index, (fused, composed)) in fused.iter().zip(&composed).enumerate() {
                let difference = (fused.to_dtype(DType::F64).unwrap() - composed).unwrap().abs().unwrap();
                let worst: f64 = difference.flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap();
                assert!(
                    worst < TOLERANCE * (1. + rows as f64 / 100.),
                    "{rows}x{dim}, tensor {index}: {worst:e}"
                );
            }
        }
    }
}
