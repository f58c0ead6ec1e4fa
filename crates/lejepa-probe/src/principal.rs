//! The principal directions of features, around their mean.
//!
//! ```text
//! X^T X = V L V^T      directions V (dim, dim)
//! X X^T = U L U^T      V = X^T U L^-1/2, where there are fewer samples than dimensions
//! ```

use faer::{Mat, MatRef, Side};
use rayon::prelude::*;

use crate::centred::{block_rows, centred, combined, inner, mean, outer, product};
use crate::rows::Rows;
use crate::watch::Watch;
use crate::{Error, Result};

/// Dimensions from which on the caller is asked during the decomposition.
const LARGE: usize = 512;
/// Directions whose variance is a smaller share of the largest are rounding.
const ROUNDING: f64 = 1e-13;

/// A mean, and directions `(dim, directions)` as columns.
pub(crate) struct Principal {
    pub(crate) mean: Vec<f64>,
    pub(crate) directions: Mat<f64>,
}

impl Principal {
    /// All directions in which the rows differ, and perhaps more.
    pub(crate) fn of(rows: Rows<'_>, watch: &mut Watch<'_>) -> Result<Self> {
        let mean = mean(rows);
        let few = rows.len() < rows.dim();
        let gram = match few {
            true => outer(rows, &mean, watch)?,
            false => inner(rows, &mean, watch, |_, _| {})?,
        };
        let decompose = move || {
            let eigen = gram.self_adjoint_eigen(Side::Lower).ok()?;
            let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
            Some((eigen.U().to_owned(), values))
        };
        let size = rows.len().min(rows.dim());
        let found = if size < LARGE { decompose() } else { watch.wait(decompose)? };
        let (vectors, values) = found.ok_or(Error::NoEigenvectors)?;
        let directions = if few { in_features(rows, &mean, (&vectors, &values)) } else { vectors };
        Ok(Self { mean, directions })
    }

    /// Coordinates along the directions, in rows of `width` numbers.
    pub(crate) fn coordinates(&self, rows: Rows<'_>, width: usize) -> Vec<f32> {
        let mut coordinates = vec![0.; rows.len() * width];
        for (first, block) in rows.blocks(block_rows(rows.dim())) {
            let turned = product(centred(block, &self.mean).as_ref(), self.directions.as_ref());
            let to = coordinates[first * width..].par_chunks_exact_mut(width).take(block.len());
            to.enumerate().for_each(|(row, to)| {
                to.iter_mut().zip(turned.row(row).iter()).for_each(|(to, from)| *to = *from as f32);
            });
        }
        coordinates
    }
}

/// Directions `(dim, directions)` from those of samples `(samples, samples)`.
fn in_features(rows: Rows<'_>, mean: &[f64], (vectors, values): (&Mat<f64>, &[f64])) -> Mat<f64> {
    let largest = values.iter().copied().fold(0., f64::max);
    let kept: Vec<usize> = (0..values.len()).filter(|&index| values[index] > ROUNDING * largest).collect();
    let scaled = Mat::from_fn(rows.len(), kept.len(), |row, index| {
        vectors[(row, kept[index])] / values[kept[index]].sqrt()
    });
    let scaled: MatRef<'_, f64> = scaled.as_ref();
    combined(rows, mean, scaled)
}
