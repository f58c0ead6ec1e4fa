//! Global response normalisation of ConvNeXt V2.
//!
//! ```text
//! g[image, c] = sqrt(sum over places of x^2),   n = g / (mean over c of g + eps)
//! y = x (1 + weight n) + bias
//! ```
//!
//! With `G` the gradient of `y`, `s = sum over places of G x` and `m` the denominator of `n`:
//!
//! ```text
//! d bias = sum G,   d weight = sum over images of n s
//! d x = G (1 + weight n) + x h / g,   h = weight s / m - sum over c of (weight s g) / (channels m^2)
//! ```

mod composed;
mod cpu;

use candle_core::{Device, Result, Shape, Tensor};

pub(crate) use self::cpu::{respond, respond_gradient};
use crate::is_fused;
use crate::operation::{Backward, Operation, View, apply, read};

const EPSILON: f64 = 1e-6;

/// Normalises the channels of every image by their norms.
///
/// # Shapes
/// - `rows` and result: `(images * places, channels)`; `weight` and `bias`: `(channels)`
pub fn response_norm(rows: &Tensor, weight: &Tensor, bias: &Tensor, images: usize) -> Result<Tensor> {
    if is_fused(rows) {
        apply(ResponseNorm { images }, [rows, weight, bias])
    } else {
        composed::response_norm(rows, weight, bias, images)
    }
}

struct ResponseNorm {
    images: usize,
}

impl Operation<3> for ResponseNorm {
    fn name(&self) -> &'static str {
        "response-norm"
    }

    fn cpu(&self, [rows, weight, bias]: [View<'_>; 3]) -> Result<(Vec<f32>, Shape)> {
        Ok((cpu::forward(&rows, &weight, &bias, self.images), rows.shape.clone()))
    }

    fn backward(&self, backward: Backward<3>) -> Result<[Option<Tensor>; 3]> {
        let Backward { inputs: [rows, weight, _], gradient, .. } = backward;
        let (of_rows, of_affine) = read([&rows, &weight, &gradient], |[rows, weight, gradient]| {
            cpu::gradients(&rows, &weight, &gradient, self.images)
        })?;
        let of_rows = Tensor::from_vec(of_rows, rows.shape(), &Device::Cpu)?;
        let of_affine = Tensor::from_vec(of_affine, (self.images, 2, weight.dim(0)?), &Device::Cpu)?;
        let of_affine = of_affine.sum(0)?; // (2, channels)
        Ok([of_rows, of_affine.get(0)?, of_affine.get(1)?].map(Some))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Var};

    use super::*;
    use crate::agreement::assert_fused_agrees;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (images, places, channels) in [(1, 1, 2), (3, 5, 7), (2, 64, 33)] {
            assert_fused_agrees(&[&[images * places, channels], &[channels], &[channels]], |tensors| {
                response_norm(&tensors[0], &tensors[1], &tensors[2], images).unwrap()
            });
        }
    }

    #[test]
    fn a_map_of_zeros_has_a_finite_gradient() {
        for dtype in [DType::F32, DType::F64] {
            let rows = Var::zeros((6, 2), dtype, &Device::Cpu).unwrap();
            let ones = Tensor::ones(2, dtype, &Device::Cpu).unwrap();
            let ys = response_norm(&rows, &ones, &ones, 2).unwrap();
            let gradients = ys.sum_all().unwrap().backward().unwrap();
            let gradient = gradients.get(&rows).unwrap().to_dtype(DType::F32).unwrap();
            assert_eq!(gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap(), [1.; 12]);
        }
    }
}
