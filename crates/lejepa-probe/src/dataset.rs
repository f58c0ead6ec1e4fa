//! Features as datasets of linfa, for what this crate has no probe for.

use linfa::Dataset;
use ndarray_linfa::{Array1, Array2, Ix1};

use crate::{Features, Result};

impl Features {
    /// Features with their classes, for linfa's classifiers; refuses values.
    ///
    /// # Shapes
    /// - records: `(images, dim)`
    /// - targets: `(images)`
    pub fn to_linfa_classes(&self) -> Result<Dataset<f64, usize, Ix1>> {
        let labels = self.labels("a classifier of linfa")?;
        Ok(Dataset::new(array(self.values().mapv(f64::from)), Array1::from_vec(labels.to_vec())))
    }

    /// Features with their values, for linfa's regressions; classes become a one in the column of the class.
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
        Dataset::new(array(self.values().mapv(f64::from)), array(self.targets().one_hot()))
    }
}

/// The same array of the version of `ndarray` that linfa uses.
fn array(values: ndarray::Array2<f64>) -> Array2<f64> {
    Array2::from_shape_fn(values.dim(), |index| values[index])
}

#[cfg(test)]
mod tests {
    use linfa::prelude::*;
    use linfa_linear::LinearRegression;

    use crate::{Confusion, Features, RidgeSolution, Targets, accuracy, mean_squared_error, r_squared};

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
        let dataset = features.to_linfa_classes().unwrap();
        let predicted = vec![0, 1, 2, 2, 2, 0];
        let matrix = ndarray_linfa::Array1::from_vec(predicted.clone()).confusion_matrix(&dataset).unwrap();
        let labels = dataset.targets().to_vec();
        assert!((accuracy(&predicted, &labels) - f64::from(matrix.accuracy())).abs() < 1e-6);
        let accuracies = Confusion::new(&predicted, &labels).class_accuracies(3);
        assert_eq!(accuracies, [Some(1.), Some(0.5), Some(2. / 3.)]);
        assert!(self::features().to_linfa_classes().is_err());
    }
}
