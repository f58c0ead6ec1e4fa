//! Principal directions of features and coordinates along them.
//!
//! ```text
//! u = (x - mean) V / deviations     (samples, directions), each column with variance 1 over the training set
//! ```

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Side};
use lejepa_probe::Features;
use ndarray::{Array2, ArrayView2, Axis, s};

use super::settings::Isotropy;
use crate::{Error, Result};

/// Features with more dimensions than this get their directions from some of the samples.
const WIDE: usize = 2048;
/// How many of them, evenly spaced.
const WIDE_SAMPLES: usize = 1024;
/// Samples that are held in f64 at a time.
const BLOCK: usize = 1024;
/// Eigenvalues below this share of the largest are rounding of f64.
const RANK: f64 = 1e-12;
/// Variances below this share, of the squared mean or of the largest variance, are rounding of f32.
const ROUNDING: f64 = 1e-14;

/// The map to whitened coordinates.
pub(crate) struct Principal {
    mean: Vec<f64>,
    /// `(dim, directions)`
    directions: Mat<f64>,
    /// Variances along them over all training samples, falling.
    pub(crate) variances: Vec<f64>,
    /// The sum of the variances of all columns.
    pub(crate) total_variance: f64,
}

impl Principal {
    /// The first directions: at most as many as the settings say, and none whose variance is below the
    /// floor.
    pub(crate) fn of(train: &Features, settings: &Isotropy) -> Result<Self> {
        let (values, samples) = (train.values(), train.len() as f64);
        let mean = mean(values);
        let directions = leading(values, &mean, settings.directions)?;
        let projected = projected(values, &mean, directions.as_ref());
        let square = |column: usize| projected.column(column).mapv(|value| value * value).sum() / samples;
        let mut kept: Vec<(f64, usize)> =
            (0..directions.ncols()).map(|column| (square(column), column)).collect();
        kept.sort_by(|left, right| right.0.total_cmp(&left.0));
        let largest = kept.first().map_or(0., |first| first.0);
        let offset: f64 = mean.iter().map(|mean| mean * mean).sum();
        if largest <= ROUNDING * offset || largest <= 0. {
            return Err(Error::NoVariance);
        }
        let floor = settings.floor.max(ROUNDING);
        kept.retain(|(variance, _)| *variance > floor * largest);
        let deviation = |((_, column), value): ((usize, usize), &f32)| f64::from(*value) - mean[column];
        let total: f64 = values.indexed_iter().map(|entry| deviation(entry).powi(2)).sum();
        Ok(Self {
            directions: Mat::from_fn(train.dim(), kept.len(), |row, index| directions[(row, kept[index].1)]),
            variances: kept.into_iter().map(|(variance, _)| variance).collect(),
            total_variance: total / samples,
            mean,
        })
    }

    /// Whitened coordinates `(samples, directions)`.
    pub(crate) fn whitened(&self, values: &Array2<f32>) -> Array2<f64> {
        let mut coordinates = projected(values, &self.mean, self.directions.as_ref());
        for (mut column, variance) in coordinates.columns_mut().into_iter().zip(&self.variances) {
            column /= variance.sqrt();
        }
        coordinates
    }
}

/// Unit vectors `(dim, count)` along which features vary most, from the smaller of `X^T X` and `X X^T`.
fn leading(values: &Array2<f32>, mean: &[f64], count: usize) -> Result<Mat<f64>> {
    let (samples, dim) = values.dim();
    let every = if dim > WIDE { samples.div_ceil(WIDE_SAMPLES).max(1) } else { 1 };
    let few = values.slice(s![..;every, ..]);
    if few.nrows() >= dim {
        let mut gram = Mat::zeros(dim, dim);
        for block in few.axis_chunks_iter(Axis(0), BLOCK) {
            let block = centred(block, mean);
            matmul(gram.as_mut(), Accum::Add, block.transpose(), block.as_ref(), 1., Par::rayon(0));
        }
        return eigenvectors(gram.as_ref(), count);
    }
    let rows = centred(few, mean);
    let vectors = eigenvectors(product(rows.as_ref(), rows.transpose()).as_ref(), count)?;
    let long = product(rows.transpose(), vectors.as_ref()); // (dim, count)
    let norms: Vec<f64> = (0..long.ncols()).map(|index| long.col(index).norm_l2()).collect();
    Ok(Mat::from_fn(dim, norms.len(), |row, index| long[(row, index)] / norms[index]))
}

/// Those of the largest eigenvalues, as columns; none that are rounding alone.
fn eigenvectors(gram: MatRef<'_, f64>, count: usize) -> Result<Mat<f64>> {
    let eigen = gram.self_adjoint_eigen(Side::Lower).map_err(|_| lejepa_probe::Error::NoEigenvectors)?;
    // Eigenvalues rise.
    let (size, values) = (gram.nrows(), eigen.S().column_vector());
    let largest = if size > 0 { values[size - 1] } else { 0. };
    let count = (0..count.min(size)).take_while(|index| values[size - 1 - index] > RANK * largest).count();
    Ok(Mat::from_fn(size, count, |row, index| eigen.U()[(row, size - 1 - index)]))
}

/// Coordinates `(samples, directions)`, block by block: raw pixels in f64 would not fit.
fn projected(values: &Array2<f32>, mean: &[f64], directions: MatRef<'_, f64>) -> Array2<f64> {
    let mut coordinates = Array2::zeros((values.nrows(), directions.ncols()));
    let blocks = values.axis_chunks_iter(Axis(0), BLOCK);
    for (block, mut to) in blocks.zip(coordinates.axis_chunks_iter_mut(Axis(0), BLOCK)) {
        let products = product(centred(block, mean).as_ref(), directions);
        to.indexed_iter_mut().for_each(|(place, to)| *to = products[place]);
    }
    coordinates
}

fn mean(values: &Array2<f32>) -> Vec<f64> {
    let mut sums = vec![0.; values.ncols()];
    for row in values.outer_iter() {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    sums.into_iter().map(|sum| sum / values.nrows().max(1) as f64).collect()
}

fn centred(values: ArrayView2<'_, f32>, mean: &[f64]) -> Mat<f64> {
    let difference = |row, column| f64::from(values[(row, column)]) - mean[column];
    Mat::from_fn(values.nrows(), values.ncols(), difference)
}

fn product(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut result = Mat::zeros(left.nrows(), right.ncols());
    matmul(result.as_mut(), Accum::Replace, left, right, 1., Par::rayon(0));
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isotropy::random::{Stream, normal, stream};

    /// Features are f32.
    const SINGLE_PRECISION: f64 = 1e-5;

    fn whitened(samples: usize, dim: usize) -> Array2<f64> {
        let mut generator = stream(5, Stream::Queries, 0);
        let mixed = normal((samples, dim), &mut generator).dot(&normal((dim, dim), &mut generator)) + 3.;
        let train = Features::labelled(mixed.mapv(|value| value as f32), vec![0; samples], 1).unwrap();
        let settings = Isotropy { directions: 8, floor: 0., ..Isotropy::default() };
        Principal::of(&train, &settings).unwrap().whitened(train.values())
    }

    #[test]
    fn whitened_coordinates_have_the_identity_as_covariance() {
        for (samples, dim, kept) in [(1200, 5, 5), (200, 20, 8), (12, 40, 8), (4, 6, 3)] {
            let coordinates = whitened(samples, dim);
            assert_eq!(coordinates.ncols(), kept);
            let covariance = coordinates.t().dot(&coordinates) / samples as f64;
            for ((row, column), value) in covariance.indexed_iter() {
                let expected = if row == column { 1. } else { 0. };
                assert!((value - expected).abs() < SINGLE_PRECISION, "{samples} {dim}: {value}");
            }
        }
    }

    #[test]
    fn directions_of_wide_features_come_from_some_samples_but_variances_from_all() {
        let (samples, dim) = (WIDE_SAMPLES + 200, WIDE + 1);
        let hidden = normal((samples, 2), &mut stream(6, Stream::Queries, 0));
        let values = Array2::from_shape_fn((samples, dim), |(row, column)| hidden[(row, column % 2)] as f32);
        let train = Features::labelled(values, vec![0; samples], 1).unwrap();
        let principal = Principal::of(&train, &Isotropy::default()).unwrap();
        assert_eq!(principal.variances.len(), 2);
        let kept: f64 = principal.variances.iter().sum();
        assert!((kept / principal.total_variance - 1.).abs() < SINGLE_PRECISION);
    }
}
