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

use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;

const EPSILON: f64 = 1e-6;
/// Below every response that matters; keeps the root's slope finite where a channel is zero everywhere.
const TINY: f64 = 1e-30;

/// # Shapes
/// - `rows` and result: `(images * places, channels)`; `weight` and `bias`: `(channels)`
pub(crate) fn response_norm(rows: &Tensor, weight: &Tensor, bias: &Tensor, images: usize) -> Result<Tensor> {
    if super::is_fused(rows) {
        return rows.contiguous()?.apply_op3(weight, bias, ResponseNorm { images });
    }
    let (count, channels) = rows.dims2()?;
    let maps = rows.reshape((images, count / images.max(1), channels))?;
    let response = (maps.sqr()?.sum_keepdim(1)? + TINY)?.sqrt()?; // (images, 1, channels)
    let relative = response.broadcast_div(&(response.mean_keepdim(2)? + EPSILON)?)?;
    let factor = (relative.broadcast_mul(weight)? + 1.)?;
    maps.broadcast_mul(&factor)?.broadcast_add(bias)?.reshape((count, channels))
}

struct ResponseNorm {
    images: usize,
}

/// What is known of the channels of one image.
struct Responses {
    /// `g`.
    response: Vec<f32>,
    /// Mean response and epsilon.
    denominator: f32,
}

impl Responses {
    fn new(map: &[f32], channels: usize) -> Self {
        let mut response = vec![0f32; channels];
        for row in map.chunks_exact(channels) {
            response.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * x);
        }
        response.iter_mut().for_each(|sum| *sum = sum.sqrt());
        let denominator = response.iter().sum::<f32>() / channels as f32 + EPSILON as f32;
        Self { response, denominator }
    }

    /// `1 + weight n`.
    fn factors(&self, weight: &[f32]) -> Vec<f32> {
        self.response.iter().zip(weight).map(|(g, weight)| 1. + weight * g / self.denominator).collect()
    }
}

impl CustomOp3 for ResponseNorm {
    fn name(&self) -> &'static str {
        "response-norm"
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
        let maps = values(storage, layout)?;
        let weight = values(weight_storage, weight_layout)?;
        let bias = values(bias_storage, bias_layout)?;
        let image = (maps.len() / self.images.max(1)).max(1);
        let mut ys = vec![0.; maps.len()];
        ys.par_chunks_mut(image).zip(maps.par_chunks(image)).for_each(|(ys, map)| {
            let factor = Responses::new(map, weight.len()).factors(weight);
            for (ys, xs) in ys.chunks_exact_mut(bias.len()).zip(map.chunks_exact(bias.len())) {
                for (((y, x), factor), bias) in ys.iter_mut().zip(xs).zip(&factor).zip(bias) {
                    *y = x * factor + bias;
                }
            }
        });
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(
        &self,
        rows: &Tensor,
        weight: &Tensor,
        _bias: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (rows, weight, gradient) = (rows.detach(), weight.detach(), gradient.detach().contiguous()?);
        let sums = rows.apply_op2_no_bwd(&gradient, &Sums { images: self.images })?; // (images, 3, channels)
        let products = sums.narrow(1, 0, 1)?.flatten_all()?.to_vec1()?;
        let of_rows = rows.apply_op3_no_bwd(&weight, &gradient, &InputGradient { products })?;
        let of_affine = sums.sum(0)?; // (3, channels)
        let (of_weight, of_bias) = (of_affine.get(1)?, of_affine.get(2)?);
        Ok((Some(of_rows), Some(of_weight), Some(of_bias)))
    }
}

/// Per image `s`, `n s` and the sum of `G` over places.
struct Sums {
    images: usize,
}

impl CustomOp2 for Sums {
    fn name(&self) -> &'static str {
        "response-norm-sums"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let maps = values(storage, layout)?;
        let gradients = values(gradient_storage, gradient_layout)?;
        let (_rows, channels) = layout.shape().dims2()?;
        let image = (maps.len() / self.images.max(1)).max(1);
        let mut sums = vec![0.; self.images * 3 * channels];
        let inputs = maps.par_chunks(image).zip(gradients.par_chunks(image));
        sums.par_chunks_mut(3 * channels).zip(inputs).for_each(|(sums, (map, gradients))| {
            let (products, rest) = sums.split_at_mut(channels);
            let (weighted, plain) = rest.split_at_mut(channels);
            for (xs, gradients) in map.chunks_exact(channels).zip(gradients.chunks_exact(channels)) {
                let sums = products.iter_mut().zip(plain.iter_mut());
                for (((product, plain), x), gradient) in sums.zip(xs).zip(gradients) {
                    *product += x * gradient;
                    *plain += gradient;
                }
            }
            let Responses { response, denominator } = Responses::new(map, channels);
            for ((weighted, product), g) in weighted.iter_mut().zip(products).zip(response) {
                *weighted = *product * g / denominator;
            }
        });
        Ok((CpuStorage::F32(sums), Shape::from((self.images, 3, channels))))
    }
}

struct InputGradient {
    /// `s` of every image.
    products: Vec<f32>,
}

impl CustomOp3 for InputGradient {
    fn name(&self) -> &'static str {
        "response-norm-input-gradient"
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
        let maps = values(storage, layout)?;
        let weight = values(weight_storage, weight_layout)?;
        let gradients = values(gradient_storage, gradient_layout)?;
        let channels = weight.len();
        let image = (maps.len() * channels / self.products.len().max(1)).max(1);
        let mut result = vec![0.; maps.len()];
        let inputs = maps.par_chunks(image).zip(gradients.par_chunks(image));
        let inputs = inputs.zip(self.products.par_chunks(channels));
        result.par_chunks_mut(image).zip(inputs).for_each(|(result, ((map, gradients), products))| {
            let responses = Responses::new(map, channels);
            let factor = responses.factors(weight);
            let Responses { response, denominator } = responses;
            let weighted = weight.iter().zip(products).map(|(weight, product)| weight * product);
            let shared: f32 = weighted.clone().zip(&response).map(|(weighted, g)| weighted * g).sum();
            let shared = shared / (channels as f32 * denominator * denominator);
            let pull: Vec<f32> = weighted
                .zip(&response)
                .map(|(weighted, &g)| if g > 0. { (weighted / denominator - shared) / g } else { 0. })
                .collect();
            let rows = map.chunks_exact(channels).zip(gradients.chunks_exact(channels));
            for (result, (xs, gradients)) in result.chunks_exact_mut(channels).zip(rows) {
                let columns = factor.iter().zip(&pull);
                for (((result, x), gradient), (factor, pull)) in
                    result.iter_mut().zip(xs).zip(gradients).zip(columns)
                {
                    *result = gradient * factor + x * pull;
                }
            }
        });
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Var};

    use super::super::agreement::assert_fused_agrees;
    use super::*;

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
