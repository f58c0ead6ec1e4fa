//! Rows with mean zero and variance one: layer normalisation before its weight and bias.
//!
//! ```text
//! n = (x - mean) s,   s = 1 / sqrt(var + eps)
//! d x = s (d n - mean(d n) - n mean(n d n))
//! ```

use pulp::{Arch, Simd, WithSimd};

use super::vectors::{change, map, sum, update};

/// # Shapes
/// - `xs` and `normed`: `(rows, dim)`; `scales`: `(rows)`, the factor `s` of every row
pub(super) fn standardise(xs: &[f32], normed: &mut [f32], scales: &mut [f32], dim: usize, epsilon: f32) {
    Arch::new().dispatch(Standardise { xs, normed, scales, dim, epsilon });
}

struct Standardise<'a> {
    xs: &'a [f32],
    normed: &'a mut [f32],
    scales: &'a mut [f32],
    dim: usize,
    epsilon: f32,
}

impl WithSimd for Standardise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rows = self.xs.chunks_exact(self.dim).zip(self.normed.chunks_exact_mut(self.dim));
        let count = self.dim as f32;
        for ((xs, normed), scale) in rows.zip(self.scales) {
            let mean = simd.splat_f32s(
                sum(
                    simd,
                    xs,
                    xs,
                    #[inline(always)]
                    |x, _| x,
                ) / count,
            );
            map(
                simd,
                xs,
                normed,
                #[inline(always)]
                |x| simd.sub_f32s(x, mean),
            );
            let variance = sum(
                simd,
                normed,
                normed,
                #[inline(always)]
                |x, y| simd.mul_f32s(x, y),
            ) / count;
            *scale = 1. / (variance + self.epsilon).sqrt();
            let factor = simd.splat_f32s(*scale);
            change(
                simd,
                normed,
                #[inline(always)]
                |x| simd.mul_f32s(x, factor),
            );
        }
    }
}

/// The gradient of the rows from that of the standardised ones, which it replaces.
///
/// # Shapes
/// - `normed` and `gradient`: `(rows, dim)`; `scales`: `(rows)`
pub(super) fn standardise_gradient(normed: &[f32], gradient: &mut [f32], scales: &[f32], dim: usize) {
    Arch::new().dispatch(Gradient { normed, gradient, scales, dim });
}

struct Gradient<'a> {
    normed: &'a [f32],
    gradient: &'a mut [f32],
    scales: &'a [f32],
    dim: usize,
}

impl WithSimd for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rows = self.normed.chunks_exact(self.dim).zip(self.gradient.chunks_exact_mut(self.dim));
        let count = self.dim as f32;
        for ((normed, gradient), &scale) in rows.zip(self.scales) {
            let mean = sum(
                simd,
                gradient,
                gradient,
                #[inline(always)]
                |g, _| g,
            ) / count;
            let slope = sum(
                simd,
                normed,
                gradient,
                #[inline(always)]
                |n, g| simd.mul_f32s(n, g),
            ) / count;
            let (scale, shift) = (simd.splat_f32s(scale), simd.splat_f32s(mean * scale));
            let slope = simd.mul_f32s(simd.splat_f32s(-slope), scale);
            update(
                simd,
                normed,
                gradient,
                #[inline(always)]
                |n, g| simd.mul_add_e_f32s(n, slope, simd.sub_f32s(simd.mul_f32s(g, scale), shift)),
            );
        }
    }
}
