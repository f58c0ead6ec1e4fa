//! A right factor in the order in which a product reads it.
//!
//! ```text
//! panel   as many columns as a tile is wide, row after row      (depth, width)
//! ```

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::Matrix;
use super::kernel::VECTORS;

/// Columns in panels, the last of which ends in zeros. Worth its making where a factor is used for many
/// blocks, and whatever the distance of its rows: powers of two would share few places of a cache.
#[derive(Debug, Clone)]
pub struct Panels {
    pub(super) values: Vec<f32>,
    pub(super) width: usize,
    pub(super) depth: usize,
    pub(super) columns: usize,
}

impl Panels {
    /// Of a factor as it is.
    ///
    /// # Shapes
    /// - `factor`: `(depth, columns)`
    pub fn new(factor: Matrix<'_>) -> Self {
        Self::filled(factor.rows, factor.columns, |panel, first, width| {
            let count = width.min(factor.columns - first);
            for (row, panel) in panel.chunks_exact_mut(width).enumerate() {
                panel[..count].copy_from_slice(&factor.values[row * factor.stride + first..][..count]);
            }
        })
    }

    /// Of a factor that lies transposed in memory, as the weight of a linear layer does.
    ///
    /// # Shapes
    /// - `factor`: `(columns, depth)`
    pub fn of_transpose(factor: Matrix<'_>) -> Self {
        Self::filled(factor.columns, factor.rows, |panel, first, width| {
            for lane in 0..width.min(factor.rows - first) {
                let row = &factor.values[(first + lane) * factor.stride..][..factor.columns];
                panel.iter_mut().skip(lane).step_by(width).zip(row).for_each(|(to, from)| *to = *from);
            }
        })
    }

    /// `fill` is given a panel, its first column and its width.
    fn filled(depth: usize, columns: usize, fill: impl Fn(&mut [f32], usize, usize) + Sync) -> Self {
        let width = Arch::new().dispatch(Width);
        let mut values = vec![0.; columns.next_multiple_of(width) * depth];
        let panels = values.par_chunks_exact_mut((width * depth).max(1)).enumerate();
        panels.for_each(|(index, panel)| fill(panel, index * width, width));
        Self { values, width, depth, columns }
    }
}

/// Finds how wide a tile is on this processor.
struct Width;

impl WithSimd for Width {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        VECTORS * S::F32_LANES
    }
}
