//! Ridge regression onto values or one-hot classes, in closed form (paper, equation OLS).
//!
//! ```text
//! weights = (X^T X + lambda I)^-1 X^T Y     with X and Y centred
//!         = X^T (X X^T + lambda I)^-1 Y     the same, cheaper with fewer samples than dimensions
//! scores  = mean(Y) + (x - mean(X)) weights
//! ```

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};

use crate::centred::{centred, mean, product};
use crate::choice::Candidates;
use crate::features::same_dimensions;
use crate::{Choice, Error, Features, Result, Scores};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ridge {
    /// Penalties to choose from.
    pub lambdas: Vec<f64>,
    /// Share of the training features on which the penalty is chosen.
    pub holdout: f64,
}

/// A fitted probe.
#[derive(Debug, Clone)]
pub struct RidgeSolution {
    feature_mean: Vec<f64>,
    target_mean: Vec<f64>,
    /// `(dim, outputs)`
    weights: Mat<f64>,
}

impl Ridge {
    /// `ridge:holdout0.1:cls`, with the kind of features
    pub fn protocol(&self, features: &str) -> String {
        format!("ridge:holdout{}:{features}", self.holdout)
    }

    /// Chooses the penalty on held-out training features, then fits all of them. Returns the choice too.
    pub fn fit(&self, train: &Features, seed: u64) -> Result<(RidgeSolution, Choice)> {
        let candidates =
            Candidates { setting: "lambdas", values: &self.lambdas, holdout: self.holdout, seed };
        let choice = candidates.choose(train, |fitted, held_out, lambdas| {
            let equations = NormalEquations::new(fitted)?;
            lambdas.iter().map(|&lambda| equations.solve(lambda)?.scores(held_out.values())).collect()
        })?;
        Ok((RidgeSolution::fit(train, choice.value)?, choice))
    }
}

impl RidgeSolution {
    /// Fits with a given penalty.
    pub fn fit(train: &Features, lambda: f64) -> Result<Self> {
        NormalEquations::new(train)?.solve(lambda)
    }

    /// The predicted values, or the score of every class.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - result: `(queries, outputs)`
    pub fn scores(&self, queries: &Array2<f32>) -> Result<Scores> {
        same_dimensions(self.feature_mean.len(), queries)?;
        let centred = centred(queries, &self.feature_mean);
        let products = product(centred.as_ref(), self.weights.as_ref());
        Ok(Array2::from_shape_fn((queries.nrows(), self.target_mean.len()), |(row, output)| {
            self.target_mean[output] + products[(row, output)]
        }))
    }
}

/// From which any penalty is solved.
struct NormalEquations {
    feature_mean: Vec<f64>,
    target_mean: Vec<f64>,
    /// `X^T X`, or `X X^T` if that is smaller.
    gram: Mat<f64>,
    /// `X^T Y`, or `Y`.
    right_side: Mat<f64>,
    /// `X`, if the smaller system is solved.
    dual_features: Option<Mat<f64>>,
}

impl NormalEquations {
    fn new(train: &Features) -> Result<Self> {
        let targets = train.targets().one_hot();
        let (samples, outputs) = targets.dim();
        let target_mean = targets.mean_axis(Axis(0)).ok_or(Error::NoSamples)?.to_vec();
        let feature_mean = mean(train.values());
        let features = centred(train.values(), &feature_mean);
        let targets =
            Mat::from_fn(samples, outputs, |row, output| targets[(row, output)] - target_mean[output]);
        let (gram, right_side, dual_features) = if samples < train.dim() {
            (product(features.as_ref(), features.transpose()), targets, Some(features))
        } else {
            let moments = product(features.transpose(), targets.as_ref());
            (product(features.transpose(), features.as_ref()), moments, None)
        };
        Ok(Self { feature_mean, target_mean, gram, right_side, dual_features })
    }

    fn solve(&self, lambda: f64) -> Result<RidgeSolution> {
        let mut penalised = self.gram.clone();
        for index in 0..penalised.nrows() {
            penalised[(index, index)] += lambda;
        }
        let factor = penalised.llt(Side::Lower).map_err(|_| Error::Singular { lambda })?;
        let solution = factor.solve(&self.right_side);
        Ok(RidgeSolution {
            feature_mean: self.feature_mean.clone(),
            target_mean: self.target_mean.clone(),
            weights: match &self.dual_features {
                Some(features) => product(features.transpose(), solution.as_ref()),
                None => solution,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Targets;

    /// Columns of zeros change no score, but let the smaller system be solved.
    #[test]
    fn few_samples_in_many_dimensions_give_the_same_scores() {
        let value = |row: usize, column: usize| ((row * 7 + column * column * 3) % 11) as f32 - 4.;
        let features = |dim: usize| {
            Array2::from_shape_fn((6, dim), |(row, column)| if column < 4 { value(row, column) } else { 0. })
        };
        let scores = |dim: usize| {
            let train = Features::labelled(features(dim), vec![0, 1, 2, 0, 1, 2], 3).unwrap();
            RidgeSolution::fit(&train, 0.5).unwrap().scores(&features(dim)).unwrap()
        };
        let (many_samples, many_dimensions) = (scores(4), scores(20));
        for (left, right) in many_samples.iter().zip(&many_dimensions) {
            assert!((left - right).abs() < 1e-9, "{left} {right}");
        }
    }

    #[test]
    fn several_values_are_predicted_at_once() {
        let values = Array2::from_shape_fn((50, 3), |(row, column)| ((row * (column + 3)) % 17) as f32);
        let targets = Array2::from_shape_fn((50, 2), |(row, output)| {
            let [a, b, c] = [0, 1, 2].map(|column| f64::from(values[(row, column)]));
            if output == 0 { a - 2. * b + 7. } else { 0.5 * c - a }
        });
        let train = Features::new(values.clone(), Targets::Values(targets.clone())).unwrap();
        let ridge = Ridge { lambdas: vec![1e-9, 1., 1e6], holdout: 0.2 };
        let (solution, choice) = ridge.fit(&train, 0).unwrap();
        assert_eq!(choice, Choice { value: 1e-9, held_out: 10 });
        let worst =
            (solution.scores(&values).unwrap() - targets).mapv(f64::abs).into_iter().fold(0., f64::max);
        assert!(worst < 1e-6, "{worst:e}");
    }
}
