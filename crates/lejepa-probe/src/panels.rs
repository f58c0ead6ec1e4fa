//! Rows in the order in which products read them.
//!
//! ```text
//! panel   the first numbers of `width` rows, then their second numbers, ...     (dim, width)
//! ```

use ndarray::{Array2, ArrayView1, Axis};
use rayon::prelude::*;

use crate::real::Real;

/// Rows of equal length, in panels; the last panel ends in rows of zeros.
pub(crate) struct Panels<T> {
    pub(crate) values: Vec<T>,
    /// Rows of a panel.
    pub(crate) width: usize,
    /// Rows that are meant.
    pub(crate) rows: usize,
    /// At least 1.
    pub(crate) dim: usize,
}

impl<T: Real> Panels<T> {
    /// `write` is given every row of the features and room for `dim` numbers.
    pub(crate) fn new(
        features: &Array2<f32>,
        dim: usize,
        width: usize,
        write: impl Fn(ArrayView1<'_, f32>, &mut [T]) + Sync,
    ) -> Self {
        let rows = features.nrows();
        let mut values = vec![T::rounded(0.); rows.next_multiple_of(width) * dim];
        let panels = values
            .par_chunks_exact_mut(width * dim)
            .zip(features.axis_chunks_iter(Axis(0), width).into_par_iter());
        panels.for_each_init(
            || vec![T::rounded(0.); dim],
            |numbers, (panel, rows)| {
                for (lane, row) in rows.outer_iter().enumerate() {
                    write(row, numbers);
                    let places = panel.iter_mut().skip(lane).step_by(width);
                    places.zip(&*numbers).for_each(|(to, from)| *to = *from);
                }
            },
        );
        Self { values, width, rows, dim }
    }
}
