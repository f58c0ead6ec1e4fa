//! Features in f64 around their mean, some at a time: in f64 all of them would take three times the room.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};

use crate::Result;
use crate::rows::Rows;
use crate::watch::Watch;

/// Numbers of a block: 32 MB.
const BLOCK: usize = 1 << 22;

/// The mean of every column; zeros if there are no rows.
pub(crate) fn mean(features: Rows<'_>) -> Vec<f64> {
    let mut mean = vec![0.; features.dim()];
    let count = features.len().max(1) as f64;
    for row in 0..features.len() {
        mean.iter_mut().zip(features.row(row)).for_each(|(mean, &value)| *mean += f64::from(value));
    }
    mean.iter_mut().for_each(|mean| *mean /= count);
    mean
}

/// The mean over columns of their variance: the square of the features' unit. 1 if all rows are the same.
pub(crate) fn mean_variance(features: Rows<'_>) -> f64 {
    let mean = mean(features);
    let deviation = |(value, mean): (&f32, &f64)| (f64::from(*value) - mean).powi(2);
    let square = |row| features.row(row).iter().zip(&mean).map(deviation).sum::<f64>();
    let total: f64 = (0..features.len()).map(square).sum();
    match total / (features.len() * features.dim()).max(1) as f64 {
        variance if variance > 0. => variance,
        _ => 1.,
    }
}

/// All columns of some rows.
pub(crate) fn centred(features: Rows<'_>, mean: &[f64]) -> Mat<f64> {
    columns(features, mean, 0..mean.len())
}

/// Some columns of all rows.
fn columns(features: Rows<'_>, mean: &[f64], range: Range<usize>) -> Mat<f64> {
    let mut block = Mat::zeros(features.len(), range.len());
    for row in 0..features.len() {
        let values = features.row(row);
        for (column, from) in range.clone().enumerate() {
            block[(row, column)] = f64::from(values[from]) - mean[from];
        }
    }
    block
}

/// Rows of a block.
pub(crate) fn block_rows(dim: usize) -> usize {
    (BLOCK / dim.max(1)).clamp(1, 4096)
}

fn column_blocks(features: Rows<'_>) -> impl Iterator<Item = Range<usize>> {
    let (dim, width) = (features.dim(), (BLOCK / features.len().max(1)).max(1));
    (0..dim).step_by(width).map(move |first| first..dim.min(first + width))
}

/// `X^T X (dim, dim)` of centred features. `with` is given every centred block, and the number of its first row.
pub(crate) fn inner(
    features: Rows<'_>,
    mean: &[f64],
    watch: &mut Watch<'_>,
    mut with: impl FnMut(usize, &Mat<f64>),
) -> Result<Mat<f64>> {
    let dim = mean.len();
    let mut gram = Mat::zeros(dim, dim);
    for (first, block) in features.blocks(block_rows(dim)) {
        watch.at(first as f64 / features.len() as f64)?;
        let block = centred(block, mean);
        matmul(gram.as_mut(), Accum::Add, block.transpose(), block.as_ref(), 1., Par::rayon(0));
        with(first, &block);
    }
    Ok(gram)
}

/// `X X^T (rows, rows)` of centred features.
pub(crate) fn outer(features: Rows<'_>, mean: &[f64], watch: &mut Watch<'_>) -> Result<Mat<f64>> {
    let mut gram = Mat::zeros(features.len(), features.len());
    for range in column_blocks(features) {
        watch.at(range.start as f64 / mean.len() as f64)?;
        let block = columns(features, mean, range);
        matmul(gram.as_mut(), Accum::Add, block.as_ref(), block.transpose(), 1., Par::rayon(0));
    }
    Ok(gram)
}

/// `X^T F (dim, columns)` of centred features and factors `F (rows, columns)`.
pub(crate) fn combined(features: Rows<'_>, mean: &[f64], factors: MatRef<'_, f64>) -> Mat<f64> {
    let mut sums = Mat::zeros(mean.len(), factors.ncols());
    for range in column_blocks(features) {
        let block = columns(features, mean, range.clone());
        let to = sums.as_mut().subrows_mut(range.start, range.len());
        matmul(to, Accum::Replace, block.transpose(), factors, 1., Par::rayon(0));
    }
    sums
}

pub(crate) fn product(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut result = Mat::zeros(left.nrows(), right.ncols());
    matmul(result.as_mut(), Accum::Replace, left, right, 1., Par::rayon(0));
    result
}
