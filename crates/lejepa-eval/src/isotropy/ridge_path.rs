//! Ridge at several penalties, with its coefficients.

use lejepa_probe::{Features, RidgeSolution, Scores, Solution};
use ndarray::{Array2, ArrayView2, Axis, concatenate, s};

use super::moments::mean;
use crate::Result;

/// Points to predict, followed by what tells the coefficients: the unit vectors and the origin.
pub(crate) struct RidgeQueries {
    /// `(points + dim + 1, dim)`
    values: Array2<f32>,
    points: usize,
}

/// What one penalty gives.
pub(crate) struct RidgeScores {
    /// `(points, outputs)`
    pub(crate) scores: Scores,
    /// `(dim, outputs)`
    pub(crate) coefficients: Array2<f64>,
}

impl RidgeQueries {
    /// `points` is `(points, dim)`.
    pub(crate) fn new(points: ArrayView2<'_, f32>) -> Self {
        let (count, dim) = points.dim();
        let mut values = Array2::zeros((count + dim + 1, dim));
        values.slice_mut(s![..count, ..]).assign(&points);
        (0..dim).for_each(|index| values[(count + index, index)] = 1.);
        Self { values, points: count }
    }

    /// Fits with a penalty of `lambda` times the mean eigenvalue of `X^T X`, where features have mean
    /// variance 1.
    pub(crate) fn ask(&self, train: &Features, lambda: f64) -> Result<RidgeScores> {
        let solution = RidgeSolution::fit(train, lambda * train.len() as f64)?;
        let all = solution.scores(&self.values)?;
        let last = all.nrows() - 1;
        let coefficients = &all.slice(s![self.points..last, ..]) - &all.row(last);
        Ok(RidgeScores { scores: all.slice(s![..self.points, ..]).to_owned(), coefficients })
    }
}

/// What every draw contributes to the total variance of coefficients `(dim, outputs)`: their mean is the sum
/// over dimensions of the variance, averaged over outputs.
pub(crate) fn coefficient_spread(draws: &[Array2<f64>]) -> Vec<f64> {
    let views: Vec<_> = draws.iter().map(|draw| draw.view().insert_axis(Axis(0))).collect();
    let Some(average) = concatenate(Axis(0), &views).ok().and_then(|all| all.mean_axis(Axis(0))) else {
        return Vec::new();
    };
    let count = draws.len() as f64;
    let unbiased = count / (count - 1.).max(1.);
    let spread = |draw: &Array2<f64>| {
        let squares = (draw - &average).mapv(|difference| difference * difference);
        let per_output: Vec<f64> = squares.sum_axis(Axis(0)).to_vec();
        mean(&per_output) * unbiased
    };
    draws.iter().map(spread).collect()
}

#[cfg(test)]
mod tests {
    use lejepa_probe::Targets;
    use ndarray::array;

    use super::*;

    /// Features are f32.
    const SINGLE_PRECISION: f64 = 1e-5;

    #[test]
    fn ordinary_least_squares_finds_the_coefficients() {
        let features = array![[1., 0.], [0., 1.], [1., 1.], [2., -1.], [-1., 3.]];
        let targets = features.dot(&array![[2.], [-3.]]) + 7.;
        let train = Features::new(features.mapv(|value| value as f32), Targets::Values(targets)).unwrap();
        let found = RidgeQueries::new(array![[1., 2.]].view()).ask(&train, 0.).unwrap();
        for (found, expected) in [(found.scores[(0, 0)], 3.), (found.coefficients[(0, 0)], 2.)] {
            assert!((found - expected).abs() < SINGLE_PRECISION, "{found}");
        }
    }

    #[test]
    fn the_spread_of_draws_has_the_unbiased_variance_as_mean() {
        let draws = [array![[1., 0.], [0., 0.]], array![[3., 0.], [0., 4.]]];
        assert_eq!(coefficient_spread(&draws), [(2. + 8.) / 2.; 2]);
        assert!(coefficient_spread(&[]).is_empty());
    }
}
