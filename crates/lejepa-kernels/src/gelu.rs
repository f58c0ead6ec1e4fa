//! `gelu(x) = x F(x)` and its derivative `F(x) + x f(x)`, with `F` and `f` the standard normal's
//! distribution function and density.

use pulp::{Arch, Simd, WithSimd};

use super::vectors::{map, normal, update};

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

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    /// Relative for large values, absolute near zero.
    fn worst(left: &[f32], right: &[f64]) -> f64 {
        let errors = left.iter().zip(right).map(|(left, right)| {
            assert!(left.is_finite(), "{left}");
            (f64::from(*left) - right).abs() / (right.abs() + 1.)
        });
        errors.fold(0., f64::max)
    }

    #[test]
    fn values_and_slopes_agree_with_those_in_f64() {
        let points: Vec<f32> = (-4000..=4000).map(|i| i as f32 * 0.003).chain([-1e4, 1e4, 0.]).collect();
        let exact = points.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let exact = Var::new(exact, &Device::Cpu).unwrap();
        let values = exact.gelu_erf().unwrap();
        let slopes = values.sum_all().unwrap().backward().unwrap();
        let slopes: Vec<f64> = slopes.get(&exact).unwrap().to_vec1().unwrap();
        let values: Vec<f64> = values.to_vec1().unwrap();

        let mut ys = vec![0.; points.len()];
        activate(&points, &mut ys);
        assert!(worst(&ys, &values) < 5e-7, "value: {:e}", worst(&ys, &values));
        let (ones, mut found) = (vec![1.; points.len()], points.clone());
        slope_times(&ones, &mut found);
        assert!(worst(&found, &slopes) < 1e-6, "slope: {:e}", worst(&found, &slopes));
        let (mut both, mut gradient) = (vec![0.; points.len()], ones);
        activate_both(&points, &mut both, &mut gradient);
        assert_eq!((both, gradient), (ys, found));
    }
}
