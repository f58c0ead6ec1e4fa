//! The innermost loops: a tile of the result stays in registers while the factors pass by.

use pulp::Simd;

/// Vectors that a tile is wide.
pub(super) const VECTORS: usize = 2;

/// Some rows of the left factor.
pub(super) trait Left<const ROWS: usize>: Copy {
    /// Where they are at a place along the sum.
    type Place;

    fn place(self, place: usize) -> Self::Place;
    fn value(self, place: &Self::Place, row: usize) -> f32;
}

/// Rows whose values along the sum lie side by side.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, const ROWS: usize>(pub(super) [&'a [f32]; ROWS]);

impl<const ROWS: usize> Left<ROWS> for Rows<'_, ROWS> {
    type Place = usize;

    #[inline(always)]
    fn place(self, place: usize) -> usize {
        place
    }

    #[inline(always)]
    fn value(self, place: &usize, row: usize) -> f32 {
        self.0[row][*place]
    }
}

/// Rows that are columns in memory.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub(super) values: &'a [f32],
    pub(super) stride: usize,
}

impl<'a, const ROWS: usize> Left<ROWS> for Columns<'a> {
    type Place = &'a [f32];

    #[inline(always)]
    fn place(self, place: usize) -> &'a [f32] {
        &self.values[place * self.stride..][..ROWS]
    }

    #[inline(always)]
    fn value(self, place: &&'a [f32], row: usize) -> f32 {
        place[row]
    }
}

/// Some columns of the right factor: from the beginning of `values`, rows `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Right<'a> {
    pub(super) values: &'a [f32],
    pub(super) stride: usize,
    pub(super) columns: usize,
}

/// Adds the product of `depth` places to a tile; all columns of it are meant.
#[inline(always)]
pub(super) fn full<S: Simd, L: Left<ROWS>, const ROWS: usize>(
    simd: S,
    left: L,
    right: Right<'_>,
    depth: usize,
    tile: &mut [[S::f32s; VECTORS]; ROWS],
) {
    let mut sums = *tile;
    for place in 0..depth {
        let values = left.place(place);
        let row = &right.values[place * right.stride..][..VECTORS * S::F32_LANES];
        let (row, _) = S::as_simd_f32s(row);
        let row: [S::f32s; VECTORS] = std::array::from_fn(|vector| row[vector]);
        for (index, sums) in sums.iter_mut().enumerate() {
            let value = simd.splat_f32s(left.value(&values, index));
            for (sum, right) in sums.iter_mut().zip(row) {
                *sum = simd.mul_add_e_f32s(value, right, *sum);
            }
        }
    }
    *tile = sums;
}

/// The same for columns that end inside vector number `COUNT - 1`.
#[inline(always)]
pub(super) fn ending<S: Simd, L: Left<ROWS>, const ROWS: usize, const COUNT: usize>(
    simd: S,
    left: L,
    right: Right<'_>,
    depth: usize,
    tile: &mut [[S::f32s; VECTORS]; ROWS],
) {
    let whole = (COUNT - 1) * S::F32_LANES;
    let mut sums = *tile;
    for place in 0..depth {
        let values = left.place(place);
        let (start, end) = right.values[place * right.stride..][..right.columns].split_at(whole);
        let (start, _) = S::as_simd_f32s(start);
        let end = simd.partial_load_f32s(end);
        let row: [S::f32s; COUNT] =
            std::array::from_fn(|vector| if vector + 1 < COUNT { start[vector] } else { end });
        for (index, sums) in sums.iter_mut().enumerate() {
            let value = simd.splat_f32s(left.value(&values, index));
            for (sum, right) in sums.iter_mut().zip(row) {
                *sum = simd.mul_add_e_f32s(value, right, *sum);
            }
        }
    }
    *tile = sums;
}
