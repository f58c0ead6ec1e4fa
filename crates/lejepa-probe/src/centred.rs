//! Features in f64 around their mean.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use ndarray::Array2;

/// The mean of every column; zeros if there are no rows.
pub(crate) fn mean(features: &Array2<f32>) -> Vec<f64> {
    let mut mean = vec![0.; features.ncols()];
    let count = features.nrows().max(1) as f64;
    for row in features.outer_iter() {
        mean.iter_mut().zip(row).for_each(|(mean, &value)| *mean += f64::from(value));
    }
    mean.iter_mut().for_each(|mean| *mean /= count);
    mean
}

pub(crate) fn centred(features: &Array2<f32>, mean: &[f64]) -> Mat<f64> {
    Mat::from_fn(features.nrows(), features.ncols(), |row, column| {
        f64::from(features[(row, column)]) - mean[column]
    })
}

pub(crate) fn product(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut result = Mat::zeros(left.nrows(), right.ncols());
    matmul(result.as_mut(), Accum::Replace, left, right, 1., Par::rayon(0));
    result
}
