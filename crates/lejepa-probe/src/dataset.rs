//! Features and linfa's datasets: the same numbers in the two versions of `ndarray`, without a copy where that is
//! possible.

use linfa::{Dataset, DatasetBase, DatasetView};
use ndarray_linfa as linfa_array;
use ndarray_linfa::{Array1, Array2, Ix1};

use crate::features::Samples;
use crate::matrix::Matrix;
use crate::rows::Rows;
use crate::targets::TargetsView;
use crate::{Error, Features, Result};

/// Targets of a dataset that probes learn: views `(samples)` of classes from 0 on, or of values `(samples)` or
/// `(samples, outputs)`.
pub trait DatasetTargets<'a> {
    /// The array of predictions of such targets.
    type Predicted;

    /// The same targets, borrowed.
    #[doc(hidden)]
    fn borrowed(&self) -> Result<Borrowed<'a>>;
}

/// Borrowed targets of a dataset.
#[doc(hidden)]
pub struct Borrowed<'a>(TargetsView<'a>);

impl<'a> DatasetTargets<'a> for linfa_array::ArrayView1<'a, usize> {
    type Predicted = Array1<usize>;

    fn borrowed(&self) -> Result<Borrowed<'a>> {
        let labels = self.to_slice().ok_or(Error::Layout)?;
        let classes = labels.iter().max().map_or(1, |largest| largest + 1);
        Ok(Borrowed(TargetsView::Classes { labels, classes }))
    }
}

impl<'a> DatasetTargets<'a> for linfa_array::ArrayView1<'a, f64> {
    type Predicted = Array1<f64>;

    fn borrowed(&self) -> Result<Borrowed<'a>> {
        self.insert_axis(linfa_array::Axis(1)).borrowed()
    }
}

impl<'a> DatasetTargets<'a> for linfa_array::ArrayView2<'a, f64> {
    type Predicted = Array2<f64>;

    fn borrowed(&self) -> Result<Borrowed<'a>> {
        Ok(Borrowed(TargetsView::Values(from_linfa(*self)?)))
    }
}

impl<'a> Samples<'a> {
    /// All samples of a dataset, borrowed; refuses what [`Features::new`] refuses, columns that were cut out of wider
    /// rows, and weights.
    pub fn from_linfa<T: DatasetTargets<'a>>(
        dataset: &DatasetBase<linfa_array::ArrayView2<'a, f32>, T>,
    ) -> Result<Self> {
        if dataset.weights().is_some() {
            return Err(Error::Weights);
        }
        Self::checked(from_linfa(dataset.records)?.into(), dataset.targets.borrowed()?.0)
    }
}

impl Features {
    /// Features with their classes, borrowed, for linfa's classifiers; refuses values.
    ///
    /// # Shapes
    /// - records: `(images, dim)`
    /// - targets: `(images)`
    pub fn as_linfa_classes(&self) -> Result<DatasetView<'_, f32, usize, Ix1>> {
        let labels = self.targets().labels().ok_or(Error::ClassesOnly { probe: "a classifier of linfa" })?;
        Ok(DatasetBase::new(
            to_linfa(self.into()).ok_or(Error::Layout)?,
            linfa_array::ArrayView1::from(labels),
        ))
    }

    /// Features with their values in f64, copied, for linfa's regressions, which want both in one precision; classes
    /// become a one in the column of the class.
    ///
    /// ```
    /// use lejepa_probe::{Features, Targets};
    /// use linfa::traits::{Fit, Predict};
    /// use linfa_linear::LinearRegression;
    /// use ndarray::array;
    ///
    /// let features = array![[0., 1.], [1., 0.], [1., 1.], [2., 1.]];
    /// let features = Features::new(features, Targets::Values(array![[1.], [5.], [4.], [7.]]))?;
    /// let dataset = features.to_linfa_values().into_single_target();
    /// let model = LinearRegression::new().fit(&dataset)?;
    /// // 3 a - b + 2
    /// assert!((model.params()[0] - 3.).abs() < 1e-9 && (model.intercept() - 2.).abs() < 1e-9);
    /// assert!((model.predict(&dataset)[1] - 5.).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Shapes
    /// - records: `(images, dim)`
    /// - targets: `(images, outputs)`
    pub fn to_linfa_values(&self) -> Dataset<f64, f64> {
        let array = |values: ndarray::Array2<f64>| Array2::from_shape_fn(values.dim(), |index| values[index]);
        Dataset::new(array(self.values().mapv(f64::from)), array(self.targets().one_hot()))
    }
}

/// A matrix of linfa's version of `ndarray`.
pub(crate) fn from_linfa<'a, T>(values: linfa_array::ArrayView2<'a, T>) -> Result<Matrix<'a, T>> {
    Matrix::new(values.to_slice().ok_or(Error::Layout)?, values.dim())
}

/// Rows as a matrix for linfa; nothing if they do not lie in memory row by row.
pub(crate) fn to_linfa(rows: Rows<'_>) -> Option<linfa_array::ArrayView2<'_, f32>> {
    linfa_array::ArrayView2::from_shape((rows.len(), rows.dim()), rows.slice()?).ok()
}

#[cfg(test)]
mod tests {
    use linfa::prelude::*;
    use linfa_linear::LinearRegression;

    use crate::{
        Confusion, Features, RidgeSolution, Solution, Targets, accuracy, mean_squared_error, r_squared,
    };

    /// A penalty of next to nothing, and least squares by another decomposition.
    const TOLERANCE: f64 = 1e-7;

    fn features() -> Features {
        let wave = |row: usize, column: usize| ((row * (column + 1)) as f32 * 0.37).sin();
        let values = ndarray::Array2::from_shape_fn((60, 5), |(row, column)| wave(row, column));
        let targets =
            values.map_axis(ndarray::Axis(1), |row| f64::from(row[0] - 2. * row[3] + row[1] * row[2]));
        Features::new(values, Targets::Values(targets.insert_axis(ndarray::Axis(1)))).unwrap()
    }

    #[test]
    fn ridge_without_penalty_is_linfas_linear_regression() {
        let features = features();
        let dataset = features.to_linfa_values().into_single_target();
        let expected = LinearRegression::new().fit(&dataset).unwrap().predict(&dataset);
        let scores = RidgeSolution::fit(&features, 1e-10).unwrap().scores(features.values()).unwrap();
        let worst = scores.iter().zip(&expected).map(|(left, right)| (left - right).abs());
        assert!(worst.fold(0., f64::max) < TOLERANCE);
        let Targets::Values(values) = features.targets() else { unreachable!() };
        let explained = expected.r2(&dataset).unwrap();
        assert!((r_squared(&scores, values)[0] - explained).abs() < TOLERANCE);
        let error = expected.mean_squared_error(&dataset).unwrap();
        assert!((mean_squared_error(&scores, values) - error).abs() < TOLERANCE);
    }

    #[test]
    fn confusion_and_accuracy_are_linfas() {
        let values = ndarray::Array2::zeros((6, 1));
        let features = Features::labelled(values, vec![0, 1, 1, 2, 2, 2], 3).unwrap();
        let dataset = features.as_linfa_classes().unwrap();
        let predicted = vec![0, 1, 2, 2, 2, 0];
        let matrix = ndarray_linfa::Array1::from_vec(predicted.clone()).confusion_matrix(&dataset).unwrap();
        let labels = dataset.targets().to_vec();
        assert!((accuracy(&predicted, &labels) - f64::from(matrix.accuracy())).abs() < 1e-6);
        let accuracies = Confusion::new(&predicted, &labels).class_accuracies(3);
        assert_eq!(accuracies, [Some(1.), Some(0.5), Some(2. / 3.)]);
        assert!(self::features().as_linfa_classes().is_err());
    }
}
