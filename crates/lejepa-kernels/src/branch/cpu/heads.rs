//! The heads of one image, forward and backward.
//!
//! ```text
//! P = softmax(Q K^T),   O = P V                            per head, Q scaled beforehand
//! dV = P^T dO,   dP = dO V^T,   dS = P (dP - rowsum(P dP)),   dQ = dS K,   dK = dS^T Q
//! ```
//!
//! As many rows of `P` exist at a time as stay in the cache.

use pulp::{Arch, Simd, WithSimd};

use crate::gemm::{Matrix, MatrixMut, Start, multiply, multiply_transposed};
use crate::vectors::{change, exp_of_negative, sum, update};

/// Values of `P` at a time.
const SCORES: usize = 1 << 16;
/// What rows of `P` are padded to: whole vectors of any processor.
const PADDING: usize = 16;

/// How the values of an image are divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    pub(super) queries: usize,
    pub(super) tokens: usize,
    pub(super) heads: usize,
    pub(super) head_dim: usize,
}

/// An image's `(queries, dim)` and `(tokens, 2 dim)`: keys, then values.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) queries: &'a [f32],
    pub(super) keys_and_values: &'a [f32],
}

impl Heads {
    fn dim(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Length of a row of `P`.
    fn padded(&self) -> usize {
        self.tokens.next_multiple_of(PADDING)
    }

    /// Rows of `P` at a time.
    fn rows(&self) -> usize {
        (SCORES / self.padded()).clamp(1, self.queries.max(1))
    }

    /// Values for two transposed matrices and two blocks of rows.
    pub(super) fn scratch(&self) -> usize {
        2 * (self.head_dim + self.rows()) * self.padded()
    }

    fn split<'s>(&self, scratch: &'s mut [f32]) -> [&'s mut [f32]; 4] {
        let (transposed, scores) = (self.head_dim * self.padded(), self.rows() * self.padded());
        super::rows::split_mut(scratch, [transposed, transposed, scores, scores])
    }

    fn head<'a>(&self, values: &'a [f32], parts: usize, part: usize, head: usize) -> Matrix<'a> {
        Matrix::new(values, parts * self.dim())
            .columns(part * self.dim() + head * self.head_dim, self.head_dim)
    }

    fn head_mut<'a>(&self, values: &'a mut [f32], parts: usize, part: usize, head: usize) -> MatrixMut<'a> {
        MatrixMut::new(values, parts * self.dim())
            .columns(part * self.dim() + head * self.head_dim, self.head_dim)
    }

    /// The transpose of keys or values, `(head_dim, padded)`.
    fn transpose<'s>(
        &self,
        values: &[f32],
        part: usize,
        head: usize,
        transposed: &'s mut [f32],
    ) -> Matrix<'s> {
        let first = part * self.dim() + head * self.head_dim;
        for (place, row) in transposed.chunks_exact_mut(self.padded()).enumerate() {
            let column = values[first + place..].iter().step_by(2 * self.dim());
            row.iter_mut().zip(column).for_each(|(to, from)| *to = *from);
            row[self.tokens..].fill(0.);
        }
        Matrix::new(transposed, self.padded())
    }

    /// # Shapes
    /// - `mixed`: `(queries, dim)`
    pub(super) fn forward(&self, values: Values<'_>, mixed: &mut [f32], scratch: &mut [f32]) {
        let [transposed, _, scores, _] = self.split(scratch);
        for head in 0..self.heads {
            let keys = self.transpose(values.keys_and_values, 0, head, transposed);
            let queries = self.head(values.queries, 1, 0, head);
            for first in (0..self.queries).step_by(self.rows()) {
                let rows = self.rows().min(self.queries - first);
                let scores = &mut scores[..rows * self.padded()];
                self.probabilities(queries.rows(first, rows), keys, scores);
                let probabilities = Matrix::new(scores, self.padded()).columns(0, self.tokens);
                let value = self.head(values.keys_and_values, 2, 1, head);
                let result = self.head_mut(mixed, 1, 0, head).rows(first, rows);
                multiply(probabilities, value, result, Start::Zero);
            }
        }
    }

    /// `mixed` is that of the result; those of queries, keys and values are written.
    pub(super) fn backward(
        &self,
        values: Values<'_>,
        mixed: &[f32],
        of_queries: &mut [f32],
        of_keys_and_values: &mut [f32],
        scratch: &mut [f32],
    ) {
        let [transposed_keys, transposed_values, scores, slopes] = self.split(scratch);
        let padded = self.padded();
        for head in 0..self.heads {
            let transposed_keys = self.transpose(values.keys_and_values, 0, head, transposed_keys);
            let transposed_values = self.transpose(values.keys_and_values, 1, head, transposed_values);
            let keys = self.head(values.keys_and_values, 2, 0, head);
            for first in (0..self.queries).step_by(self.rows()) {
                let rows = self.rows().min(self.queries - first);
                let start = if first == 0 { Start::Zero } else { Start::Result };
                let queries = self.head(values.queries, 1, 0, head).rows(first, rows);
                let mixed = self.head(mixed, 1, 0, head).rows(first, rows);
                let (scores, slopes) = (&mut scores[..rows * padded], &mut slopes[..rows * padded]);
                self.probabilities(queries, transposed_keys, scores);
                multiply(mixed, transposed_values, MatrixMut::new(slopes, padded), Start::Zero);
                let probabilities = Matrix::new(scores, padded).columns(0, self.tokens);
                multiply_transposed(
                    probabilities,
                    mixed,
                    self.head_mut(of_keys_and_values, 2, 1, head),
                    start,
                );
                Arch::new().dispatch(SoftmaxGradient { heads: *self, probabilities: scores, slopes });
                let slopes = Matrix::new(slopes, padded).columns(0, self.tokens);
                multiply(slopes, keys, self.head_mut(of_queries, 1, 0, head).rows(first, rows), Start::Zero);
                multiply_transposed(slopes, queries, self.head_mut(of_keys_and_values, 2, 0, head), start);
            }
        }
    }

    /// `softmax(queries keys)` of every row, `(rows, padded)`.
    fn probabilities(&self, queries: Matrix<'_>, keys: Matrix<'_>, scores: &mut [f32]) {
        multiply(queries, keys, MatrixMut::new(scores, self.padded()), Start::Zero);
        Arch::new().dispatch(Softmax { heads: *self, scores });
    }
}

struct Softmax<'a> {
    heads: Heads,
    scores: &'a mut [f32],
}

impl WithSimd for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for row in self.scores.chunks_exact_mut(self.heads.padded()) {
            // So low that they are as good as absent.
            row[self.heads.tokens..].fill(f32::MIN);
            let (vectors, _) = S::as_mut_simd_f32s(row);
            let mut largest = simd.splat_f32s(f32::MIN);
            for x in vectors.iter() {
                largest = simd.max_f32s(largest, *x);
            }
            let largest = simd.splat_f32s(simd.reduce_max_f32s(largest));
            let mut sum = simd.splat_f32s(0.);
            for x in vectors.iter_mut() {
                *x = exp_of_negative(simd, simd.sub_f32s(*x, largest));
                sum = simd.add_f32s(sum, *x);
            }
            let factor = simd.splat_f32s(1. / simd.reduce_sum_f32s(sum));
            change(
                simd,
                row,
                #[inline(always)]
                |x| simd.mul_f32s(x, factor),
            );
        }
    }
}

struct SoftmaxGradient<'a> {
    heads: Heads,
    probabilities: &'a [f32],
    slopes: &'a mut [f32],
}

impl WithSimd for SoftmaxGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let padded = self.heads.padded();
        let rows = self.probabilities.chunks_exact(padded).zip(self.slopes.chunks_exact_mut(padded));
        for (probabilities, slopes) in rows {
            let mean = simd.splat_f32s(sum(
                simd,
                probabilities,
                slopes,
                #[inline(always)]
                |p, slope| simd.mul_f32s(p, slope),
            ));
            update(
                simd,
                probabilities,
                slopes,
                #[inline(always)]
                |p, slope| simd.mul_f32s(p, simd.sub_f32s(slope, mean)),
            );
        }
    }
}
