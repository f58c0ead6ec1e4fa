//! Layer normalisation over the last axis, forward and backward in one pass each.
//!
//! With `n = (x - mean) / sqrt(var + eps)` and `g` the gradient of `y = n * weight + bias`:
//!
//! ```text
//! d bias = sum g,   d weight = sum g n
//! d x = (h - mean(h) - n mean(h n)) / sqrt(var + eps),   h = g * weight
//! ```

mod composed;
mod cpu;

use candle_core::{Result, Shape, Tensor};

use crate::is_fused;
use crate::operation::{Backward, Operation, View, apply, compute};

/// Normalises every row.
///
/// # Shapes
/// - `xs` and result: `(.., dim)`; `weight` and `bias`: `(dim)`
pub fn layer_norm(xs: &Tensor, weight: &Tensor, bias: &Tensor, epsilon: f32) -> Result<Tensor> {
    if is_fused(xs) {
        apply(LayerNorm { epsilon }, [xs, weight, bias])
    } else {
        composed::layer_norm(xs, weight, bias, epsilon)
    }
}

struct LayerNorm {
    epsilon: f32,
}

impl Operation<3> for LayerNorm {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu(&self, [xs, weight, bias]: [View<'_>; 3]) -> Result<(Vec<f32>, Shape)> {
        Ok((cpu::forward(&xs, &weight, &bias, self.epsilon), xs.shape.clone()))
    }

    fn backward(&self, backward: Backward<3>) -> Result<[Option<Tensor>; 3]> {
        let Backward { inputs: [xs, weight, _], gradient, .. } = backward;
        let (dim, epsilon) = (weight.dim(0)?, self.epsilon);
        let of_xs = compute([&xs, &weight, &gradient], xs.shape(), |[xs, weight, gradient]| {
            cpu::input_gradient(&xs, &weight, &gradient, epsilon)
        })?;
        let of_affine = compute([&xs, &gradient], (2, dim), |[xs, gradient]| {
            cpu::affine_gradient(&xs, &gradient, dim, epsilon)
        })?;
        Ok([of_xs, of_affine.get(0)?, of_affine.get(1)?].map(Some))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::*;
    use crate::agreement::random;

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
