//! The numbers that products are computed in: f32, or f64 where rounding matters.

use std::ops::Sub;

use pulp::Simd;

use crate::exponential::exponential;

/// A number, alone and in the vectors of a processor.
pub(crate) trait Real: Copy + PartialOrd + Sub<Output = Self> + Into<f64> + Send + Sync {
    const LOWEST: Self;
    type Vector<S: Simd>: Copy;

    fn rounded(value: f64) -> Self;
    /// `exp((product - largest) scale)`, which is not above 1.
    fn weight(product: Self, largest: Self, scale: Self) -> Self;

    /// Numbers as vectors; what does not fill one is left out.
    fn vectors<S: Simd>(numbers: &[Self]) -> &[Self::Vector<S>];
    fn vectors_mut<S: Simd>(numbers: &mut [Self]) -> &mut [Self::Vector<S>];
    fn splat<S: Simd>(simd: S, number: Self) -> Self::Vector<S>;
    fn add<S: Simd>(simd: S, left: Self::Vector<S>, right: Self::Vector<S>) -> Self::Vector<S>;
    /// `left right + sum`
    fn multiply_add<S: Simd>(
        simd: S,
        left: Self::Vector<S>,
        right: Self::Vector<S>,
        sum: Self::Vector<S>,
    ) -> Self::Vector<S>;
}

macro_rules! vectors {
    ($vector:ident, $as_simd:ident, $as_mut_simd:ident, $splat:ident, $add:ident, $multiply_add:ident) => {
        const LOWEST: Self = Self::NEG_INFINITY;
        type Vector<S: Simd> = S::$vector;

        #[inline(always)]
        fn rounded(value: f64) -> Self {
            value as Self
        }

        #[inline(always)]
        fn vectors<S: Simd>(numbers: &[Self]) -> &[S::$vector] {
            S::$as_simd(numbers).0
        }

        #[inline(always)]
        fn vectors_mut<S: Simd>(numbers: &mut [Self]) -> &mut [S::$vector] {
            S::$as_mut_simd(numbers).0
        }

        #[inline(always)]
        fn splat<S: Simd>(simd: S, number: Self) -> S::$vector {
            simd.$splat(number)
        }

        #[inline(always)]
        fn add<S: Simd>(simd: S, left: S::$vector, right: S::$vector) -> S::$vector {
            simd.$add(left, right)
        }

        #[inline(always)]
        fn multiply_add<S: Simd>(
            simd: S,
            left: S::$vector,
            right: S::$vector,
            sum: S::$vector,
        ) -> S::$vector {
            simd.$multiply_add(left, right, sum)
        }
    };
}

impl Real for f32 {
    vectors!(f32s, as_simd_f32s, as_mut_simd_f32s, splat_f32s, add_f32s, mul_add_e_f32s);

    #[inline(always)]
    fn weight(product: Self, largest: Self, scale: Self) -> Self {
        exponential((product - largest) * scale)
    }
}

impl Real for f64 {
    vectors!(f64s, as_simd_f64s, as_mut_simd_f64s, splat_f64s, add_f64s, mul_add_e_f64s);

    #[inline(always)]
    fn weight(product: Self, largest: Self, scale: Self) -> Self {
        ((product - largest) * scale).exp()
    }
}
