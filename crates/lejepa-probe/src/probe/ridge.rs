//! Ridge regression onto values or one-hot classes, in closed form (paper, equation OLS).
//!
//! ```text
//! weights = (X^T X + lambda I)^-1 X^T Y     with X and Y centred
//!         = X^T (X X^T + lambda I)^-1 Y     the same, cheaper with fewer samples than dimensions
//! scores  = mean(Y) + (x - mean(X)) weights
//! ```
//!
//! Sums over samples are made block by block: features are never copied as a whole.

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use serde::{Deserialize, Serialize};

use crate::centred::{block_rows, centred, combined, inner, mean, mean_variance, outer, product};
use crate::choice::{Candidates, ScoreKind, a_tenth};
use crate::demand::Size;
use crate::estimator::{Estimator, Fitted};
use crate::features::Samples;
use crate::learnt::{Columns, Learnt};
use crate::params::{Params, ValidParams};
use crate::rows::Rows;
use crate::settings::{all_positive, share};
use crate::solution::{Solution, Take};
use crate::targets::TargetsView;
use crate::watch::{Watch, unwatched};
use crate::{Choice, Error, Result};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ridge {
    /// Penalties to choose from, as scikit-learn's. If absent, [`Ridge::PATH`] for features in units of their
    /// spread: as if they had a mean variance of 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lambdas: Option<Vec<f64>>,
    /// Share of the training features on which the penalty is chosen; folds of them if that is too few.
    #[serde(default = "crate::choice::a_tenth")]
    pub holdout: f64,
}

/// Settings as linfa has them.
pub type RidgeParams = Params<Ridge>;
/// The same, checked.
pub type RidgeValidParams = ValidParams<Ridge>;

/// A fitted probe.
#[derive(Debug, Clone)]
pub struct RidgeSolution {
    feature_mean: Vec<f64>,
    target_mean: Vec<f64>,
    /// `(dim, columns)`
    weights: Mat<f64>,
    columns: Columns,
}

/// Equations from which on the caller is asked while they are solved.
const LARGE: usize = 1024;

impl Ridge {
    /// Penalties for features of a mean variance of 1.
    pub const PATH: [f64; 9] = [1e-3, 1e-2, 1e-1, 1., 1e1, 1e2, 1e3, 1e4, 1e5];

    /// Penalties of [`Ridge::PATH`] to choose from.
    pub fn params() -> RidgeParams {
        Self { lambdas: None, holdout: a_tenth() }.into()
    }
}

impl RidgeParams {
    /// Penalties to choose from, as scikit-learn's.
    pub fn lambdas(self, lambdas: Vec<f64>) -> Self {
        self.with(|ridge| ridge.lambdas = Some(lambdas))
    }

    /// Share of the training features on which the penalty is chosen.
    pub fn holdout(self, holdout: f64) -> Self {
        self.with(|ridge| ridge.holdout = holdout)
    }
}

impl Estimator for Ridge {
    type Solution<'a> = RidgeSolution;

    const NAME: &'static str = "ridge";
    const SETTING: &'static str = "lambda";

    fn check(&self) -> Result<()> {
        all_positive("lambdas", self.lambdas.as_deref().unwrap_or(&Self::PATH))?;
        share(self.holdout)
    }

    fn given(&self) -> &[f64] {
        self.lambdas.as_deref().unwrap_or_default()
    }

    /// `ridge:scaled:holdout0.1:cls`
    fn protocol(&self, features: &str, choice: Option<&Choice>) -> String {
        let scaled = if self.lambdas.is_none() { "scaled:" } else { "" };
        format!("ridge:{scaled}{}:{features}", Choice::tag(choice, self.holdout))
    }

    fn memory(&self, size: Size) -> u64 {
        let [samples, dim, outputs, _] = size.of();
        let sides = outputs.saturating_mul(3 * dim + samples.min(dim));
        // The matrix, a copy with the penalty, and its factor.
        Size::bytes(size.square().saturating_mul(3).saturating_add(sides), size_of::<f64>())
    }

    fn learn<'a>(
        &self,
        train: Samples<'a>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Fitted<RidgeSolution>> {
        let unit = if self.lambdas.is_none() { mean_variance(train.rows()) } else { 1. };
        let candidates = Candidates {
            setting: "lambdas",
            values: self.lambdas.as_deref().unwrap_or(&Self::PATH),
            holdout: self.holdout,
            seed,
            scores: ScoreKind::Ranks,
        };
        let choice = candidates.choose(train, &mut watch.part(0., 0.8), |trial, judge, watch| {
            let equations = NormalEquations::new(trial.fitted, &mut watch.part(0., 0.5))?;
            let mut watch = watch.part(0.5, 1.);
            for (index, lambda) in trial.values.iter().enumerate() {
                let mut watch = watch.step(index, trial.values.len());
                let solution = equations.solve(lambda * unit, &mut watch)?;
                let mut sample = 0;
                solution.visit(trial.held_out.rows(), &mut watch, &mut |scores| {
                    judge.hear((index, sample), &solution.columns, scores);
                    sample += 1;
                })?;
            }
            Ok(())
        })?;
        let mut watch = watch.part(0.8, 1.);
        let solution = NormalEquations::new(train, &mut watch)?.solve(choice.value * unit, &mut watch)?;
        Ok(Fitted { solution, choice: Some(choice) })
    }
}

impl RidgeSolution {
    /// Fits with a given penalty.
    pub fn fit<'a>(train: impl Into<Samples<'a>>, lambda: f64) -> Result<Self> {
        unwatched(|watch| NormalEquations::new(train.into(), watch)?.solve(lambda, watch))
    }
}

/// The predicted values, or the score of every class.
impl Solution for RidgeSolution {
    fn columns(&self) -> &Columns {
        &self.columns
    }

    fn visit(&self, queries: Rows<'_>, watch: &mut Watch<'_>, take: &mut Take<'_>) -> Result<usize> {
        let queries = queries.of_length(self.feature_mean.len())?;
        let mut scores = vec![0.; self.target_mean.len()];
        for (first, block) in queries.blocks(block_rows(queries.dim())) {
            watch.at(first as f64 / queries.len() as f64)?;
            let products = product(centred(block, &self.feature_mean).as_ref(), self.weights.as_ref());
            for row in 0..block.len() {
                for (output, (score, mean)) in scores.iter_mut().zip(&self.target_mean).enumerate() {
                    *score = mean + products[(row, output)];
                }
                take(&scores);
            }
        }
        Ok(0)
    }
}

/// From which any penalty is solved.
struct NormalEquations<'a> {
    train: Rows<'a>,
    feature_mean: Vec<f64>,
    target_mean: Vec<f64>,
    columns: Columns,
    /// `X^T X`, or `X X^T` if that is smaller.
    gram: Mat<f64>,
    /// `X^T Y`, or `Y`.
    right_side: Mat<f64>,
}

impl<'a> NormalEquations<'a> {
    fn new(samples: Samples<'a>, watch: &mut Watch<'_>) -> Result<Self> {
        samples.needs_some()?;
        let (learnt, train) = (Learnt::new(samples), samples.rows());
        let (feature_mean, target_mean) = (mean(train), learnt.mean());
        let outputs = target_mean.len();
        let mut target = vec![0.; outputs];
        let (gram, right_side) = if train.len() < train.dim() {
            let mut targets = Mat::zeros(train.len(), outputs);
            for row in 0..train.len() {
                target.iter_mut().zip(&target_mean).for_each(|(target, mean)| *target = -mean);
                learnt.add(row, 1., &mut target);
                target.iter().enumerate().for_each(|(output, target)| targets[(row, output)] = *target);
            }
            (outer(train, &feature_mean, watch)?, targets)
        } else {
            // Sums of centred features need no centred targets.
            let mut moments = Mat::zeros(train.dim(), outputs);
            let gram = inner(train, &feature_mean, watch, |first, block| {
                add_moments(&learnt, first, block, &mut moments);
            })?;
            (gram, moments)
        };
        Ok(Self { train, feature_mean, target_mean, columns: learnt.columns, gram, right_side })
    }

    fn solve(&self, lambda: f64, watch: &mut Watch<'_>) -> Result<RidgeSolution> {
        let mut penalised = self.gram.clone();
        for index in 0..penalised.nrows() {
            penalised[(index, index)] += lambda;
        }
        let factor = match penalised.nrows() < LARGE {
            true => penalised.llt(Side::Lower),
            false => watch.wait(move || penalised.llt(Side::Lower))?,
        };
        let solution = factor.map_err(|_| Error::Singular { lambda })?.solve(&self.right_side);
        let weights = match self.train.len() < self.train.dim() {
            true => combined(self.train, &self.feature_mean, solution.as_ref()),
            false => solution,
        };
        Ok(RidgeSolution {
            feature_mean: self.feature_mean.clone(),
            target_mean: self.target_mean.clone(),
            weights,
            columns: self.columns.clone(),
        })
    }
}

/// Adds `X^T Y` of a block of centred features, without a one for every class.
fn add_moments(learnt: &Learnt<'_>, first: usize, block: &Mat<f64>, moments: &mut Mat<f64>) {
    match learnt.samples.targets() {
        TargetsView::Classes { .. } => {
            for row in 0..block.nrows() {
                let own = learnt.own[first + row] as usize;
                (0..block.ncols()).for_each(|column| moments[(column, own)] += block[(row, column)]);
            }
        }
        TargetsView::Values(values) => {
            let targets = Mat::from_fn(block.nrows(), values.dim().1, |row, output| {
                values.row(learnt.samples.image(first + row))[output]
            });
            *moments += product(block.transpose(), targets.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::{Chosen, Features, Targets};

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
        let ridge = Ridge { lambdas: Some(vec![1e-9, 1., 1e6]), holdout: 0.2 };
        let Fitted { solution, choice } = unwatched(|watch| ridge.fit(&train, 0, watch)).unwrap();
        assert_eq!(choice, Some(Choice { value: 1e-9, held_out: 50, by: Chosen::Folds(5) }));
        let worst =
            (solution.scores(&values).unwrap() - targets).mapv(f64::abs).into_iter().fold(0., f64::max);
        assert!(worst < 1e-6, "{worst:e}");
    }
}
