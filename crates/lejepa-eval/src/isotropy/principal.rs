//! Coordinates of features along their principal directions.
//!
//! ```text
//! u = (x - mean) V / deviations     (samples, directions), each column with variance 1 over the training set
//! ```

use faer::Mat;
use lejepa_picture::Directions;
use lejepa_probe::Features;
use ndarray::Array2;

use super::settings::Isotropy;
use crate::{Error, Result};

/// Variances below this share, of the squared mean or of the largest variance, are rounding of f32.
const ROUNDING: f64 = 1e-14;

/// The map to whitened coordinates.
pub(crate) struct Principal {
    directions: Directions,
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
        let found = Directions::of(values.view(), settings.directions)?;
        let projected = found.project(values.view());
        let square = |column: usize| projected.column(column).mapv(|value| value * value).sum() / samples;
        let mut kept: Vec<(f64, usize)> = (0..found.count()).map(|column| (square(column), column)).collect();
        kept.sort_by(|left, right| right.0.total_cmp(&left.0));
        let largest = kept.first().map_or(0., |first| first.0);
        let Directions { mean, vectors } = found;
        let offset: f64 = mean.iter().map(|mean| mean * mean).sum();
        if largest <= ROUNDING * offset || largest <= 0. {
            return Err(Error::NoVariance);
        }
        let floor = settings.floor.max(ROUNDING);
        kept.retain(|(variance, _)| *variance > floor * largest);
        let deviation = |((_, column), value): ((usize, usize), &f32)| f64::from(*value) - mean[column];
        let total: f64 = values.indexed_iter().map(|entry| deviation(entry).powi(2)).sum();
        let vectors = Mat::from_fn(train.dim(), kept.len(), |row, index| vectors[(row, kept[index].1)]);
        Ok(Self {
            directions: Directions { mean, vectors },
            variances: kept.into_iter().map(|(variance, _)| variance).collect(),
            total_variance: total / samples,
        })
    }

    /// Whitened coordinates `(samples, directions)`.
    pub(crate) fn whitened(&self, values: &Array2<f32>) -> Array2<f64> {
        let mut coordinates = self.directions.project(values.view());
        for (mut column, variance) in coordinates.columns_mut().into_iter().zip(&self.variances) {
            column /= variance.sqrt();
        }
        coordinates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isotropy::random::{Stream, normal, stream};
    use lejepa_picture::{WIDE, WIDE_SAMPLES};

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
