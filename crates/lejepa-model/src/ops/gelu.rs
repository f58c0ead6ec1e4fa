//! `gelu(x) = x F(x)` and its derivative `F(x) + x f(x)`, with `F` and `f` the standard normal's
//! distribution function and density.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;
use super::exponential::exp_of_negative;

/// The exact (error function) GELU.
pub(crate) fn gelu(xs: &Tensor) -> Result<Tensor> {
    if super::is_fused(xs) { xs.contiguous()?.apply_op1(Gelu) } else { xs.gelu_erf() }
}

struct Gelu;
struct GeluGradient;

/// Values per task.
const CHUNK: usize = 1 << 14;

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let mut ys = vec![0.; xs.len()];
        ys.par_chunks_mut(CHUNK).zip(xs.par_chunks(CHUNK)).for_each(|(ys, xs)| {
            for (y, &x) in ys.iter_mut().zip(xs) {
                *y = x * normal(x).0;
            }
        });
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(&self, xs: &Tensor, _ys: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = gradient.detach().contiguous()?;
        Ok(Some(xs.detach().apply_op2_no_bwd(&gradient, &GeluGradient)?))
    }
}

impl CustomOp2 for GeluGradient {
    fn name(&self) -> &'static str {
        "gelu-gradient"
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
        let mut result = vec![0.; xs.len()];
        let inputs = xs.par_chunks(CHUNK).zip(gradients.par_chunks(CHUNK));
        result.par_chunks_mut(CHUNK).zip(inputs).for_each(|(result, (xs, gradients))| {
            for ((result, &x), &gradient) in result.iter_mut().zip(xs).zip(gradients) {
                let (distribution, density) = normal(x);
                *result = gradient * (distribution + x * density);
            }
        });
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

/// Distribution function and density of the standard normal, both from one exponential
/// (Abramowitz and Stegun 7.1.26, error below 2e-7). Free of branches, so that it is vectorised.
fn normal(x: f32) -> (f32, f32) {
    const INVERSE_SQRT_TAU: f32 = 0.398_942_3;
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1. / (1. + 0.327_591_1 * z);
    let polynomial =
        ((((1.061_405_4 * t - 1.453_152_1) * t + 1.421_413_8) * t - 0.284_496_72) * t + 0.254_829_6) * t;
    let exponential = exp_of_negative(-0.5 * x * x);
    let tail = 0.5 * polynomial * exponential; // 1 - F(|x|)
    (if x < 0. { tail } else { 1. - tail }, INVERSE_SQRT_TAU * exponential)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        let points: Vec<f32> = (-4000..=4000).map(|i| i as f32 * 0.003).chain([-1e4, 1e4, 0.]).collect();
        let exact: Vec<f64> = points.iter().map(|&x| f64::from(x)).collect();
        let fused = Var::new(points, &Device::Cpu).unwrap();
        let composed = Var::new(exact, &Device::Cpu).unwrap();
        let (ys, expected) = (gelu(&fused).unwrap(), gelu(&composed).unwrap());
        let slope = ys.sum_all().unwrap().backward().unwrap();
        let expected_slope = expected.sum_all().unwrap().backward().unwrap();
        let worst = |left: &Tensor, right: &Tensor| -> f64 {
            let left = left.to_dtype(candle_core::DType::F64).unwrap();
            // Relative for large values, absolute near zero.
            let scale = (right.abs().unwrap() + 1.).unwrap();
            ((left - right).unwrap().abs().unwrap() / scale).unwrap().max(0).unwrap().to_scalar().unwrap()
        };
        let error = worst(&ys, &expected);
        assert!(error < 5e-7, "value: {error:e}");
        let error = worst(slope.get(&fused).unwrap(), expected_slope.get(&composed).unwrap());
        assert!(error < 1e-6, "slope: {error:e}");
    }
}
