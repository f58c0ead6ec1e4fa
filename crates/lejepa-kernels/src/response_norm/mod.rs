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

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;
use super::filled::filled;
use super::wide::wide;

const EPSILON: f64 = 1e-6;
/// Below every response that matters; keeps the root's slope finite where a channel is zero everywhere.
const TINY: f64 = 1e-30;

/// # Shapes
/// - `rows` and result: `(images * places, channels)`; `weight` and `bias`: `(channels)`
pub fn response_norm(rows: &Tensor, weight: &Tensor, bias: &Tensor, images: usize) -> Result<Tensor> {
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
    #[inline(always)]
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
        let ys = filled(maps.len(), image, |index, ys| {
            let map = &maps[index * image..][..image];
            wide(
                #[inline(always)]
                || {
                    let factor = Responses::new(map, weight.len()).factors(weight);
                    for (ys, xs) in ys.chunks_exact_mut(bias.len()).zip(map.chunks_exact(bias.len())) {
                        for (((y, x), factor), bias) in ys.iter_mut().zip(xs).zip(&factor).zip(bias) {
                            *y = x * factor + bias;
                        }
                    }
                },
            );
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
        let (count, channels) = rows.dims2()?;
        let all = rows.apply_op3_no_bwd(&weight, &gradient, &Gradients { images: self.images })?;
        let of_rows = all.narrow(0, 0, count * channels)?.reshape((count, channels))?;
        let of_affine = all.narrow(0, count * channels, self.images * 2 * channels)?;
        let of_affine = of_affine.reshape((self.images, 2, channels))?.sum(0)?; // (2, channels)
        let (of_weight, of_bias) = (of_affine.get(0)?, of_affine.get(1)?);
        Ok((Some(of_rows), Some(of_weight), Some(of_bias)))
    }
}

/// The gradient of all rows, then those of weight and bias from every image: an image is read while it is in the cache.
struct Gradients {
    images: usize,
}

impl CustomOp3 for Gradients {
    fn name(&self) -> &'static str {
        "response-norm-gradients"
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
        let image = (maps.len() / self.images.max(1)).max(1);
        let mut all = vec![0.; maps.len() + self.images * 2 * channels];
        let (of_rows, of_affine) = all.split_at_mut(maps.len());
        let results = of_rows.par_chunks_mut(image).zip(of_affine.par_chunks_mut(2 * channels));
        results.zip(maps.par_chunks(image).zip(gradients.par_chunks(image))).for_each(
            |((of_rows, of_affine), (map, gradients))| {
                wide(
                    #[inline(always)]
                    || gradients_of_image([map, gradients, weight], of_rows, of_affine),
                );
            },
        );
        let length = all.len();
        Ok((CpuStorage::F32(all), Shape::from(length)))
    }
}

/// `d x = G factor + x pull`, per channel of one image.
struct Slope {
    factor: Vec<f32>,
    pull: Vec<f32>,
}

impl Slope {
    /// Adds to the gradients of weight and bias.
    #[inline(always)]
    fn new([map, gradients, weight]: [&[f32]; 3], [of_weight, of_bias]: [&mut [f32]; 2]) -> Self {
        let channels = weight.len();
        let mut products = vec![0f32; channels]; // s
        for (xs, gradients) in map.chunks_exact(channels).zip(gradients.chunks_exact(channels)) {
            let sums = products.iter_mut().zip(of_bias.iter_mut());
            for (((product, of_bias), x), gradient) in sums.zip(xs).zip(gradients) {
                *product += x * gradient;
                *of_bias += gradient;
            }
        }
        let responses = Responses::new(map, channels);
        let factor = responses.factors(weight);
        let Responses { response, denominator } = responses;
        for ((of_weight, product), g) in of_weight.iter_mut().zip(&products).zip(&response) {
            *of_weight += product * g / denominator;
        }
        let weighted = weight.iter().zip(&products).map(|(weight, product)| weight * product);
        let shared: f32 = weighted.clone().zip(&response).map(|(weighted, g)| weighted * g).sum();
        let shared = shared / (channels as f32 * denominator * denominator);
        let pull = weighted
            .zip(&response)
            .map(|(weighted, &g)| if g > 0. { (weighted / denominator - shared) / g } else { 0. })
            .collect();
        Self { factor, pull }
    }
}

#[inline(always)]
fn gradients_of_image([map, gradients, weight]: [&[f32]; 3], of_rows: &mut [f32], of_affine: &mut [f32]) {
    let channels = weight.len();
    let (of_weight, of_bias) = of_affine.split_at_mut(channels);
    let Slope { factor, pull } = Slope::new([map, gradients, weight], [of_weight, of_bias]);
    let rows = map.chunks_exact(channels).zip(gradients.chunks_exact(channels));
    for (of_rows, (xs, gradients)) in of_rows.chunks_exact_mut(channels).zip(rows) {
        let columns = factor.iter().zip(&pull);
        for (((result, x), gradient), (factor, pull)) in
            of_rows.iter_mut().zip(xs).zip(gradients).zip(columns)
        {
            *result = gradient * factor + x * pull;
        }
    }
}

/// Of one image, in place.
pub(super) fn respond(map: &mut [f32], weight: &[f32], bias: &[f32]) {
    wide(
        #[inline(always)]
        || {
            let factor = Responses::new(map, weight.len()).factors(weight);
            for xs in map.chunks_exact_mut(weight.len()) {
                xs.iter_mut().zip(&factor).zip(bias).for_each(|((x, factor), bias)| *x = *x * factor + bias);
            }
        },
    );
}

/// The same, with the gradient of what comes out, which becomes that of what came in; those of weight and bias are added.
pub(super) fn respond_gradient(
    [weight, bias]: [&[f32]; 2],
    map: &mut [f32],
    gradients: &mut [f32],
    [of_weight, of_bias]: [&mut [f32]; 2],
) {
    wide(
        #[inline(always)]
        || {
            let Slope { factor, pull } =
                Slope::new([map, gradients, weight], [&mut *of_weight, &mut *of_bias]);
            let rows = map.chunks_exact_mut(weight.len()).zip(gradients.chunks_exact_mut(weight.len()));
            for (xs, gradients) in rows {
                let columns = factor.iter().zip(&pull).zip(bias);
                for ((x, gradient), ((factor, pull), bias)) in
                    xs.iter_mut().zip(gradients.iter_mut()).zip(columns)
                {
                    *gradient = *gradient * factor + *x * pull;
                    *x = *x * factor + bias;
                }
            }
        },
    );
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
