//! Functions of whole vectors, and loops over slices with them.
//!
//! Everything in them, closures too, must be part of the function that a processor's instructions are switched
//! on for: what is not inlined there calls every single instruction.

use pulp::Simd;

/// `exp(x)` for `x <= 0`, to about two units in the last place: `2^k exp(r)` with `|r| <= ln(2) / 2`.
#[inline(always)]
pub(super) fn exp_of_negative<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    /// Adding it leaves a whole number in the last bits.
    const ROUND: f32 = 12_582_912.;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Not `max`, which would hide a NaN.
    let lowest = simd.splat_f32s(-87.);
    let x = simd.select_f32s(simd.less_than_f32s(x, lowest), lowest, x);
    let shifted = simd.mul_add_e_f32s(x, simd.splat_f32s(std::f32::consts::LOG2_E), simd.splat_f32s(ROUND));
    let k = simd.sub_f32s(shifted, simd.splat_f32s(ROUND));
    let r = simd.mul_add_e_f32s(k, simd.splat_f32s(-LN_2_HIGH), x);
    let r = simd.mul_add_e_f32s(k, simd.splat_f32s(-LN_2_LOW), r);
    let mut series = simd.splat_f32s(1. / 720.);
    for coefficient in [1. / 120., 1. / 24., 1. / 6., 1. / 2., 1., 1.] {
        series = simd.mul_add_e_f32s(series, r, simd.splat_f32s(coefficient));
    }
    let bits = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    let power = simd.add_u32s(bits, simd.splat_u32s(127 << 23));
    simd.mul_f32s(series, simd.transmute_f32s_u32s(power))
}

/// Distribution function and density of the standard normal, both from one exponential
/// (Abramowitz and Stegun 7.1.26, error below 2e-7).
#[inline(always)]
pub(super) fn normal<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    const INVERSE_SQRT_TAU: f32 = 0.398_942_3;
    let z = simd.mul_f32s(simd.abs_f32s(x), simd.splat_f32s(0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2));
    let t = simd.div_f32s(simd.splat_f32s(1.), simd.add_f32s(z, simd.splat_f32s(1.)));
    let mut polynomial = simd.splat_f32s(0.5 * 1.061_405_4);
    for coefficient in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6] {
        polynomial = simd.mul_add_e_f32s(polynomial, t, simd.splat_f32s(0.5 * coefficient));
    }
    let exponential = exp_of_negative(simd, simd.mul_f32s(simd.mul_f32s(x, x), simd.splat_f32s(-0.5)));
    let tail = simd.mul_f32s(simd.mul_f32s(polynomial, t), exponential); // 1 - F(|x|)
    let is_negative = simd.less_than_f32s(x, simd.splat_f32s(0.));
    let distribution = simd.select_f32s(is_negative, tail, simd.sub_f32s(simd.splat_f32s(1.), tail));
    (distribution, simd.mul_f32s(exponential, simd.splat_f32s(INVERSE_SQRT_TAU)))
}

/// `ys = f(xs)`.
#[inline(always)]
pub(super) fn map<S: Simd>(simd: S, xs: &[f32], ys: &mut [f32], f: impl Fn(S::f32s) -> S::f32s) {
    let (xs, x_end) = S::as_simd_f32s(xs);
    let (ys, y_end) = S::as_mut_simd_f32s(ys);
    for (y, x) in ys.iter_mut().zip(xs) {
        *y = f(*x);
    }
    if !y_end.is_empty() {
        simd.partial_store_f32s(y_end, f(simd.partial_load_f32s(x_end)));
    }
}

/// `xs = f(xs)`.
#[inline(always)]
pub(super) fn change<S: Simd>(simd: S, xs: &mut [f32], f: impl Fn(S::f32s) -> S::f32s) {
    let (xs, end) = S::as_mut_simd_f32s(xs);
    for x in xs.iter_mut() {
        *x = f(*x);
    }
    if !end.is_empty() {
        let last = f(simd.partial_load_f32s(end));
        simd.partial_store_f32s(end, last);
    }
}

/// `ys = f(xs, ys)`.
#[inline(always)]
pub(super) fn update<S: Simd>(simd: S, xs: &[f32], ys: &mut [f32], f: impl Fn(S::f32s, S::f32s) -> S::f32s) {
    let (xs, x_end) = S::as_simd_f32s(xs);
    let (ys, y_end) = S::as_mut_simd_f32s(ys);
    for (y, x) in ys.iter_mut().zip(xs) {
        *y = f(*x, *y);
    }
    if !y_end.is_empty() {
        let end = f(simd.partial_load_f32s(x_end), simd.partial_load_f32s(y_end));
        simd.partial_store_f32s(y_end, end);
    }
}

/// The sum of `f(left, right)`, which must be zero where both are.
#[inline(always)]
pub(super) fn sum<S: Simd>(
    simd: S,
    left: &[f32],
    right: &[f32],
    f: impl Fn(S::f32s, S::f32s) -> S::f32s,
) -> f32 {
    let (left, left_end) = S::as_simd_f32s(left);
    let (right, right_end) = S::as_simd_f32s(right);
    let mut sums = [simd.splat_f32s(0.); 2];
    if !left_end.is_empty() {
        sums[1] = f(simd.partial_load_f32s(left_end), simd.partial_load_f32s(right_end));
    }
    let (left, left_last) = left.as_chunks::<2>();
    let (right, right_last) = right.as_chunks::<2>();
    for (left, right) in left.iter().zip(right) {
        sums[0] = simd.add_f32s(sums[0], f(left[0], right[0]));
        sums[1] = simd.add_f32s(sums[1], f(left[1], right[1]));
    }
    for (left, right) in left_last.iter().zip(right_last) {
        sums[0] = simd.add_f32s(sums[0], f(*left, *right));
    }
    simd.reduce_sum_f32s(simd.add_f32s(sums[0], sums[1]))
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, WithSimd};

    use super::*;

    struct Exponentials<'a>(&'a [f32], &'a mut [f32]);

    impl WithSimd for Exponentials<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            map(
                simd,
                self.0,
                self.1,
                #[inline(always)]
                |x| exp_of_negative(simd, x),
            );
        }
    }

    #[test]
    fn exponentials_agree_with_the_standard_library() {
        let xs: Vec<f32> = (0..=80_000).map(|step| -(step as f32) * 1e-3).chain([-1e30, f32::NAN]).collect();
        let mut ys = vec![0.; xs.len()];
        Arch::new().dispatch(Exponentials(&xs, &mut ys));
        for (&x, &fast) in xs.iter().zip(&ys).take(80_001) {
            let (fast, exact) = (f64::from(fast), f64::from(x).exp());
            assert!((fast - exact).abs() <= 3e-7 * exact, "exp({x}): {fast:e} against {exact:e}");
        }
        assert!(ys[80_001] < 1e-37);
        assert!(ys[80_002].is_nan());
    }
}
