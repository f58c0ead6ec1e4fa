//! Rows in the order in which products read them.
//!
//! ```text
//! panel   the first numbers of `width` rows, then their second numbers, ...     (dim, width)
//! ```

use ndarray::ArrayView1;
use rayon::prelude::*;

use crate::real::Real;
use crate::rows::Rows;

/// Writes what products are made of: a row, and room for its numbers.
pub(crate) type Write<'a, T> = dyn Fn(ArrayView1<'_, f32>, &mut [T]) + Sync + 'a;

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
    pub(crate) fn new(features: Rows<'_>, dim: usize, width: usize, write: &Write<'_, T>) -> Self {
        let rows = features.len();
        let mut values = vec![T::rounded(0.); rows.next_multiple_of(width) * dim];
        values.par_chunks_exact_mut(width * dim).enumerate().for_each_init(
            || vec![T::rounded(0.); dim],
            |numbers, (panel, to)| {
                let first = panel * width;
                for lane in 0..width.min(rows - first) {
                    write(features.row(first + lane), numbers);
                    let places = to.iter_mut().skip(lane).step_by(width);
                    places.zip(&*numbers).for_each(|(to, from)| *to = *from);
                }
            },
        );
        Self { values, width, rows, dim }
    }
}
