//! Ridge regression onto one-hot targets, in closed form (paper, equation OLS).
//!
//! ```text
//! weights = (X^T X + lambda I)^-1 X^T Y     with X and Y centred
//!         = X^T (X X^T + lambda I)^-1 Y     the same, cheaper with fewer samples than dimensions
//! scores  = mean(Y) + (x - mean(X)) weights
//! ```

use faer::linalg::matmul::matmul;
use faer::linalg::solvers::Solve;
use faer::{Accum, Mat, Par, Side};
use lejepa_data::{Purpose, generator};
use ndarray::Array2;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::knn::argmax;
use crate::{Error, Features, Result, accuracy};

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
    /// `(dim, classes)`
    weights: Mat<f64>,
}

impl Ridge {
    /// `ridge:holdout0.1:cls`, with the kind of features
    pub fn protocol(&self, features: &str) -> String {
        format!("ridge:holdout{}:{features}", self.holdout)
    }

    /// Chooses the penalty on held-out training features, then fits all of them. Returns the choice too.
    /// Labels are below `classes`.
    pub fn fit(&self, train: &Features, classes: usize, seed: u64) -> Result<(RidgeSolution, f64)> {
        let (fitted, held_out) = split(train, self.holdout, seed);
        let equations = NormalEquations::new(&fitted, classes);
        let mut best: Option<(f64, f64)> = None;
        for &lambda in &self.lambdas {
            let predicted = equations.solve(lambda)?.predict(&held_out.values);
            let accuracy = accuracy(&predicted, &held_out.labels);
            if best.is_none_or(|(highest, _)| accuracy > highest) {
                best = Some((accuracy, lambda));
            }
        }
        // Without a penalty to choose, the one in the middle of all scales.
        let lambda = best.map_or(1., |(_, lambda)| lambda);
        Ok((NormalEquations::new(train, classes).solve(lambda)?, lambda))
    }
}

impl RidgeSolution {
    /// Fits with a given penalty.
    pub fn fit(train: &Features, classes: usize, lambda: f64) -> Result<Self> {
        NormalEquations::new(train, classes).solve(lambda)
    }

    /// The score of every class.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - result: `(queries, classes)`
    pub fn scores(&self, queries: &Array2<f32>) -> Array2<f64> {
        let classes = self.target_mean.len();
        let centred = Mat::from_fn(queries.nrows(), queries.ncols(), |row, column| {
            f64::from(queries[(row, column)]) - self.feature_mean[column]
        });
        let products = product(centred.as_ref(), self.weights.as_ref());
        Array2::from_shape_fn((queries.nrows(), classes), |(row, class)| {
            self.target_mean[class] + products[(row, class)]
        })
    }

    /// The class with the highest score for every query.
    pub fn predict(&self, queries: &Array2<f32>) -> Vec<usize> {
        self.scores(queries).outer_iter().map(|scores| argmax(scores.iter().copied())).collect()
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
    fn new(train: &Features, classes: usize) -> Self {
        let (samples, dim) = train.values.dim();
        let count = samples.max(1) as f64;
        let mut feature_mean = vec![0.; dim];
        let mut target_mean = vec![0.; classes];
        for (row, &label) in train.values.outer_iter().zip(&train.labels) {
            target_mean[label] += 1. / count;
            for (mean, &value) in feature_mean.iter_mut().zip(row) {
                *mean += f64::from(value) / count;
            }
        }
        let features = Mat::from_fn(samples, dim, |row, column| {
            f64::from(train.values[(row, column)]) - feature_mean[column]
        });
        let targets = Mat::from_fn(samples, classes, |row, class| {
            f64::from(u8::from(train.labels[row] == class)) - target_mean[class]
        });
        let (gram, right_side, dual_features) = if samples < dim {
            (product(features.as_ref(), features.transpose()), targets, Some(features))
        } else {
            let moments = product(features.transpose(), targets.as_ref());
            (product(features.transpose(), features.as_ref()), moments, None)
        };
        Self { feature_mean, target_mean, gram, right_side, dual_features }
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

fn product(left: faer::MatRef<'_, f64>, right: faer::MatRef<'_, f64>) -> Mat<f64> {
    let mut result = Mat::zeros(left.nrows(), right.ncols());
    matmul(result.as_mut(), Accum::Replace, left, right, 1., Par::rayon(0));
    result
}

/// Training features without and with the held-out share; both have at least one sample if there are two.
fn split(train: &Features, holdout: f64, seed: u64) -> (Features, Features) {
    let samples = train.labels.len();
    let mut order: Vec<usize> = (0..samples).collect();
    order.shuffle(&mut generator(seed, Purpose::Evaluation, 0, 1));
    let held_out = ((samples as f64 * holdout).round() as usize).clamp(1, samples.max(2) - 1);
    let part = |indices: &[usize]| Features {
        values: train.values.select(ndarray::Axis(0), indices),
        labels: indices.iter().map(|&index| train.labels[index]).collect(),
    };
    let (held_out, fitted) = order.split_at(held_out.min(samples));
    (part(fitted), part(held_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of zeros change no score, but let the smaller system be solved.
    #[test]
    fn few_samples_in_many_dimensions_give_the_same_scores() {
        let value = |row: usize, column: usize| ((row * 7 + column * column * 3) % 11) as f32 - 4.;
        let features = |dim: usize| {
            Array2::from_shape_fn((6, dim), |(row, column)| if column < 4 { value(row, column) } else { 0. })
        };
        let scores = |dim: usize| {
            let train = Features::new(features(dim), vec![0, 1, 2, 0, 1, 2]).unwrap();
            RidgeSolution::fit(&train, 3, 0.5).unwrap().scores(&features(dim))
        };
        let (many_samples, many_dimensions) = (scores(4), scores(20));
        for (left, right) in many_samples.iter().zip(&many_dimensions) {
            assert!((left - right).abs() < 1e-9, "{left} {right}");
        }
    }
}
