//! `gelu(x) = x F(x)` and its derivative `F(x) + x f(x)`, with `F` and `f` the standard normal's
//! distribution function and density.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::contiguous::values;
use super::vectors::{map, normal, update};

/// The exact (error function) GELU.
pub(crate) fn gelu(xs: &Tensor) -> Result<Tensor> {
    if super::is_fused(xs) { xs.contiguous()?.apply_op1(Gelu) } else { xs.gelu_erf() }
}

struct Gelu;
struct GeluGradient;

/// Values per task.
const CHUNK: usize = 1 << 14;

/// `ys = gelu(xs)`.
pub(super) fn activate(xs: &[f32], ys: &mut [f32]) {
    Arch::new().dispatch(Activate { xs, ys });
}

struct Activate<'a> {
    xs: &'a [f32],
    ys: &'a mut [f32],
}

impl WithSimd for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        map(
            simd,
            self.xs,
            self.ys,
            #[inline(always)]
            |x| simd.mul_f32s(x, normal(simd, x).0),
        );
    }
}

/// `xs = gradient gelu'(xs)`.
pub(super) fn slope_times(gradient: &[f32], xs: &mut [f32]) {
    Arch::new().dispatch(Slope { gradient, xs });
}

struct Slope<'a> {
    gradient: &'a [f32],
    xs: &'a mut [f32],
}

impl WithSimd for Slope<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        update(
            simd,
            self.gradient,
            self.xs,
            #[inline(always)]
            |gradient, x| {
                let (distribution, density) = normal(simd, x);
                simd.mul_f32s(gradient, simd.mul_add_e_f32s(x, density, distribution))
            },
        );
    }
}

/// Both at once, from one exponential: `ys = gelu(xs)`, `gradient = gradient gelu'(xs)`.
pub(super) fn activate_both(xs: &[f32], ys: &mut [f32], gradient: &mut [f32]) {
    Arch::new().dispatch(Both { xs, ys, gradient });
}

struct Both<'a> {
    xs: &'a [f32],
    ys: &'a mut [f32],
    gradient: &'a mut [f32],
}

impl WithSimd for Both<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (xs, x_end) = S::as_simd_f32s(self.xs);
        let (ys, y_end) = S::as_mut_simd_f32s(self.ys);
        let (gradients, gradient_end) = S::as_mut_simd_f32s(self.gradient);
        for ((x, y), gradient) in xs.iter().zip(ys).zip(gradients) {
            (*y, *gradient) = both(simd, *x, *gradient);
        }
        if !x_end.is_empty() {
            let (y, gradient) =
                both(simd, simd.partial_load_f32s(x_end), simd.partial_load_f32s(gradient_end));
            simd.partial_store_f32s(y_end, y);
            simd.partial_store_f32s(gradient_end, gradient);
        }
    }
}

/// GELU, and its slope times a gradient.
#[inline(always)]
fn both<S: Simd>(simd: S, x: S::f32s, gradient: S::f32s) -> (S::f32s, S::f32s) {
    let (distribution, density) = normal(simd, x);
    let slope = simd.mul_add_e_f32s(x, density, distribution);
    (simd.mul_f32s(x, distribution), simd.mul_f32s(gradient, slope))
}

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let mut ys = vec![0.; xs.len()];
        ys.par_chunks_mut(CHUNK).zip(xs.par_chunks(CHUNK)).for_each(|(ys, xs)| activate(xs, ys));
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
            result.copy_from_slice(xs);
            slope_times(gradients, result);
        });
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
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
