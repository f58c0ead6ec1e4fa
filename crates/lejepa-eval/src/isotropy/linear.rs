//! Lemmas 1 and 2 without a model: ridge and OLS on linear functions of Gaussian features.
//!
//! ```text
//! y = x . beta + sigma e,  x ~ N(0, Sigma),  n samples, fitted with an intercept
//! OLS     E tr Var(beta) = sigma^2 tr Sigma^-1 / (n - d - 2)      X^T X is Wishart with n - 1 degrees of freedom
//!         E of the variance of predictions = sigma^2 d / (n - d - 2), whatever Sigma is
//! ridge   squared bias = sum_k (lambda / (lambda_k + lambda))^2 beta_k^2,  if X^T X is n Sigma
//! ```
//!
//! Every unit vector is a task of its own: their mean is that over all directions of `beta`. Both squared
//! biases also stand for predictions of functions that have unit variance in every shape of the features.

use lejepa_probe::{Features, Targets};
use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::moments::{Moments, mean, standard_error};
use super::random::{Stream, normal, stream};
use super::ridge_path::RidgeQueries;
use super::settings::{all, at_least};
use super::smooth::stretched;
use super::spectrum::Spectrum;
use super::verdict::Comparison;
use super::{ProbeKind, Statement, Verdict};
use crate::Result;

/// Groups of draws whose estimates of bias are compared.
const BATCHES: usize = 10;
/// Degrees of freedom that the standard error of the variance needs.
const SPARE_SAMPLES: usize = 5;

/// What is simulated. Features have mean variance 1 in every direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinearDemonstration {
    /// Of the features, and the number of tasks.
    pub dim: usize,
    /// Training samples of each draw; at least `dim + 5`.
    pub samples: usize,
    /// Training sets, rounded up to a multiple of 10.
    pub draws: usize,
    /// Standard deviation of what is added to training targets of OLS.
    pub noise: f64,
    /// Penalties of ridge relative to the mean eigenvalue of `X^T X`.
    pub lambdas: Vec<f64>,
}

impl Default for LinearDemonstration {
    fn default() -> Self {
        Self { dim: 8, samples: 64, draws: 1000, noise: 1., lambdas: vec![0.01, 0.1, 1.] }
    }
}

/// What was found for one condition number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearPoint {
    /// Largest over smallest variance.
    pub condition: f64,
    /// Total variance of the coefficients of OLS, simulated.
    pub coefficient_variance: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// What it should be.
    pub expected_coefficient_variance: f64,
    /// Variance of the predictions of OLS, simulated.
    pub prediction_variance: f64,
    /// What it should be.
    pub expected_prediction_variance: f64,
    /// Of ridge, one per penalty.
    pub ridge: Vec<RidgeBias>,
}

/// Squared bias of ridge coefficients, for true coefficients of length 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RidgeBias {
    /// Relative to the mean eigenvalue of `X^T X`.
    pub lambda: f64,
    /// Along the narrowest direction, simulated.
    pub worst: f64,
    /// Averaged over all directions, simulated.
    pub average: f64,
    /// Along the narrowest direction, if `X^T X` is what it is on average.
    pub fixed_design_worst: f64,
    /// The same averaged over all directions.
    pub fixed_design_average: f64,
}

/// Results of all conditions, the first of which is 1.
pub(crate) struct LinearResult {
    pub(crate) points: Vec<LinearPoint>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// One condition's simulation.
struct Simulated {
    /// Squared length of what coefficients lack, for every draw.
    coefficients: Vec<f64>,
    predictions: Vec<f64>,
    ridge: Vec<Batches>,
}

/// Squared bias of one penalty, one number per batch.
struct Batches {
    worst: Vec<f64>,
    average: Vec<f64>,
}

impl LinearDemonstration {
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        at_least("dim", 1, self.dim)?;
        at_least("samples", self.dim.saturating_add(SPARE_SAMPLES), self.samples)?;
        at_least("draws", 2 * BATCHES, self.draws)?;
        all("noise", &[self.noise], "a finite number of at least 0", |noise| noise >= 0.)?;
        all("lambdas", &self.lambdas, "finite numbers above 0", |lambda| lambda > 0.)
    }

    pub(crate) fn run(&self, conditions: &[f64], seed: u64) -> Result<LinearResult> {
        let spectra: Vec<Spectrum> = conditions.iter().map(|&c| Spectrum::geometric(self.dim, c)).collect();
        let simulated: Vec<Simulated> =
            spectra.par_iter().map(|spectrum| self.simulate(spectrum, seed)).collect::<Result<_>>()?;
        let verdicts = self.verdicts(conditions, &simulated);
        let points = conditions.iter().zip(&spectra).zip(simulated);
        let points =
            points.map(|((&condition, spectrum), simulated)| self.point(condition, spectrum, &simulated));
        Ok(LinearResult { points: points.collect(), verdicts })
    }

    fn simulate(&self, spectrum: &Spectrum, seed: u64) -> Result<Simulated> {
        let Self { dim, samples, .. } = *self;
        let queries = RidgeQueries::new(Array2::zeros((0, dim)).view());
        let empty = || Batches { worst: Vec::new(), average: Vec::new() };
        let mut result = Simulated {
            coefficients: Vec::new(),
            predictions: Vec::new(),
            ridge: self.lambdas.iter().map(|_| empty()).collect(),
        };
        let per_batch = self.draws.div_ceil(BATCHES);
        for batch in 0..BATCHES {
            let mut moments: Vec<Moments> =
                self.lambdas.iter().map(|_| Moments::new(Array2::eye(dim))).collect();
            for draw in batch * per_batch..(batch + 1) * per_batch {
                let mut generator = stream(seed, Stream::LinearDraw, draw);
                let features = stretched(normal((samples, dim), &mut generator), spectrum);
                let features = features.mapv(|value| value as f32);
                let truth = features.mapv(f64::from); // one task per coefficient
                let noise = normal((samples, dim), &mut generator) * self.noise;
                let noisy = Features::new(features.clone(), Targets::Values(&truth + &noise))?;
                let errors = queries.ask(&noisy, 0.)?.coefficients - Array2::<f64>::eye(dim);
                let mut squares = errors.mapv(|error| error * error / dim as f64); // (dim, tasks)
                result.coefficients.push(squares.sum());
                for (mut row, variance) in squares.outer_iter_mut().zip(&spectrum.0) {
                    row *= *variance;
                }
                result.predictions.push(squares.sum());
                // Coefficients are linear in the targets: noise adds nothing to their mean.
                let clean = Features::new(features, Targets::Values(truth))?;
                for (moments, &lambda) in moments.iter_mut().zip(&self.lambdas) {
                    let coefficients = queries.ask(&clean, lambda)?.coefficients;
                    moments.add(&coefficients.reversed_axes()); // (tasks, dim)
                }
            }
            for (moments, batches) in moments.iter().zip(&mut result.ridge) {
                let biases = moments.points().corrected_squared_bias; // means over dim
                batches.average.push(mean(&biases) * dim as f64);
                batches.worst.push(biases.last().map_or(0., |bias| bias * dim as f64));
            }
        }
        Ok(result)
    }

    fn point(&self, condition: f64, spectrum: &Spectrum, simulated: &Simulated) -> LinearPoint {
        let spare = self.samples.saturating_sub(self.dim + 2) as f64;
        let noise = self.noise * self.noise / spare;
        let ridge = self.lambdas.iter().zip(&simulated.ridge).map(|(&lambda, batches)| RidgeBias {
            lambda,
            worst: mean(&batches.worst),
            average: mean(&batches.average),
            fixed_design_worst: spectrum.worst_ridge_bias(lambda),
            fixed_design_average: spectrum.average_ridge_bias(lambda),
        });
        LinearPoint {
            condition,
            coefficient_variance: mean(&simulated.coefficients),
            standard_error: standard_error(&simulated.coefficients),
            expected_coefficient_variance: noise * spectrum.fisher_information(),
            prediction_variance: mean(&simulated.predictions),
            expected_prediction_variance: noise * self.dim as f64,
            ridge: ridge.collect(),
        }
    }

    /// At the largest condition: OLS, and every penalty for the worst task and the average one.
    fn verdicts(&self, conditions: &[f64], simulated: &[Simulated]) -> Vec<Verdict> {
        let [isotropic, .., anisotropic] = simulated else { return Vec::new() };
        let condition = conditions.last().copied().unwrap_or(1.);
        let lemma2 = Comparison {
            statement: Statement::Lemma2,
            probe: ProbeKind::Ridge,
            setting: 0.,
            shape: format!("condition {condition}"),
            isotropic: &isotropic.coefficients,
            anisotropic: &anisotropic.coefficients,
        };
        let pairs = self.lambdas.iter().zip(isotropic.ridge.iter().zip(&anisotropic.ridge));
        let lemma1 = pairs.flat_map(|(&setting, (isotropic, anisotropic))| {
            let worst = ("worst", &isotropic.worst, &anisotropic.worst);
            let average = ("average", &isotropic.average, &anisotropic.average);
            [worst, average].map(|(task, isotropic, anisotropic)| Comparison {
                statement: Statement::Lemma1,
                probe: ProbeKind::Ridge,
                setting,
                shape: format!("condition {condition}, {task} task"),
                isotropic,
                anisotropic,
            })
        });
        lemma1.chain([lemma2]).map(Comparison::verdict).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bias of a random design against that of its mean: about `d / n`.
    const RANDOM_DESIGN: f64 = 0.3;

    #[test]
    fn the_variance_of_coefficients_is_what_theory_says_and_that_of_predictions_does_not_change() {
        let settings = LinearDemonstration { draws: 400, lambdas: vec![0.1], ..Default::default() };
        for point in settings.run(&[1., 10., 100.], 11).unwrap().points {
            let away = (point.coefficient_variance - point.expected_coefficient_variance).abs();
            assert!(away < 4. * point.standard_error, "{point:?}");
            assert!(point.standard_error < 0.05 * point.coefficient_variance, "{point:?}");
            let ratio = point.prediction_variance / point.expected_prediction_variance;
            assert!((ratio - 1.).abs() < 0.1, "{point:?}");
        }
    }

    #[test]
    fn isotropic_features_have_the_least_bias_for_the_worst_task_and_on_average() {
        let settings = LinearDemonstration {
            draws: 100,
            samples: 200,
            lambdas: vec![0.01, 0.1, 1.],
            ..Default::default()
        };
        let result = settings.run(&[1., 10., 100.], 12).unwrap();
        for pair in result.points.windows(2) {
            for (left, right) in pair[0].ridge.iter().zip(&pair[1].ridge) {
                assert!(left.worst < right.worst && left.average < right.average, "{left:?} {right:?}");
                assert!((right.worst / right.fixed_design_worst - 1.).abs() < RANDOM_DESIGN, "{right:?}");
            }
        }
        assert!(result.verdicts.iter().all(|verdict| verdict.holds == crate::isotropy::Holds::Yes));
    }
}
