//! Multinomial logistic regression, as DINOv2 probes features.
//!
//! ```text
//! minimise  sum_i -log softmax(W x_i + b)[y_i] + |W|^2 / (2 C)     b is not penalised
//! ```
//!
//! Features are centred and turned into the directions of their principal components (`principal.rs`). That changes neither
//! the penalty nor any probability, but makes the Hessian nearly diagonal, so that L-BFGS on top of its
//! diagonal needs few steps, however badly scaled the features are. A path of values of `C` is fitted in
//! order: each starts where the last two solutions point to, and with the curvature that was learnt there.

use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

use crate::centred::{block_rows, centred, mean_variance, product};
use crate::choice::{Candidates, ScoreKind, a_tenth};
use crate::demand::{BLOCKS, Size};
use crate::estimator::{Estimator, Fitted};
use crate::features::Samples;
use crate::lbfgs::{Lbfgs, MEMORY, Stop};
use crate::learnt::{Columns, Learnt};
use crate::losses::{Losses, Turned};
use crate::params::{Params, ValidParams};
use crate::principal::Principal;
use crate::rows::Rows;
use crate::settings::{all_positive, positive, share, whole};
use crate::skinny::WIDTH;
use crate::softmax::softmax;
use crate::solution::{Solution, Take};
use crate::watch::{Watch, unwatched};
use crate::{Choice, Result};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logistic {
    /// Values of `C` to choose from, as scikit-learn's. If absent, DINOv2's for features in units of their
    /// spread: as if they had a mean variance of 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub c: Option<Vec<f64>>,
    /// Share of the training features on which `C` is chosen; folds of them if that is too few.
    #[serde(default = "crate::choice::a_tenth")]
    pub holdout: f64,
    /// Steps at most for each `C`.
    #[serde(default = "default_steps")]
    pub steps: usize,
}

/// Settings as linfa has them.
pub type LogisticParams = Params<Logistic>;
/// The same, checked.
pub type LogisticValidParams = ValidParams<Logistic>;

/// `10^linspace(-6, 5, 45)`.
pub fn dinov2_path() -> Vec<f64> {
    (0..45).map(|index| 10f64.powf(-6. + 11. * f64::from(index) / 44.)).collect()
}

fn default_steps() -> usize {
    1000
}

/// Newton's decrement at which a fit ends, relative to the value: probabilities are then off by less than 1e-5.
const TOLERANCE: f64 = 1e-11;

/// Bytes of turned features up to which they are kept beside those of the caller.
const KEPT: usize = 256 << 20;
/// Evaluations after which half of the way is said to be done.
const HALF_WAY: f64 = 20.;

/// A fitted probe.
#[derive(Debug, Clone)]
pub struct LogisticSolution {
    /// Of the training features.
    mean: Vec<f64>,
    /// `(dim, columns)`, for features around their mean.
    weights: Mat<f64>,
    intercept: Vec<f64>,
    columns: Columns,
}

/// Features prepared for any number of fits.
pub struct LogisticProblem<'a> {
    train: Rows<'a>,
    principal: Principal,
    /// Features in principal directions, unless they are too many to be kept.
    kept: Option<Vec<f32>>,
    /// Numbers of a turned row, with zeros behind them.
    width: usize,
    /// The mean variance of a feature.
    variance: f64,
    /// The column of every sample's class.
    labels: Vec<u32>,
    columns: Columns,
    path: Path,
}

/// What fits leave for the next one.
struct Path {
    /// The last solution.
    point: Vec<f64>,
    /// Its `C`, the solution before it and that one's.
    last: Option<f64>,
    before: Option<(f64, Vec<f64>)>,
    lbfgs: Lbfgs,
}

impl Logistic {
    /// DINOv2's path of `C` to choose from.
    pub fn params() -> LogisticParams {
        Self { c: None, holdout: a_tenth(), steps: default_steps() }.into()
    }
}

impl LogisticParams {
    /// Values of `C` to choose from, as scikit-learn's.
    pub fn c(self, c: Vec<f64>) -> Self {
        self.with(|logistic| logistic.c = Some(c))
    }

    /// Share of the training features on which `C` is chosen.
    pub fn holdout(self, holdout: f64) -> Self {
        self.with(|logistic| logistic.holdout = holdout)
    }

    /// Steps at most for each `C`.
    pub fn steps(self, steps: usize) -> Self {
        self.with(|logistic| logistic.steps = steps)
    }
}

impl Estimator for Logistic {
    type Solution<'a> = LogisticSolution;

    const NAME: &'static str = "logistic";
    const SETTING: &'static str = "C";

    fn check(&self) -> Result<()> {
        self.c.as_deref().map_or(Ok(()), |values| all_positive("c", values))?;
        whole("steps", self.steps)?;
        share(self.holdout)
    }

    fn given(&self) -> &[f64] {
        self.c.as_deref().unwrap_or_default()
    }

    /// `logistic:scaled:holdout0.1:cls`
    fn protocol(&self, features: &str, choice: Option<&Choice>) -> String {
        let scaled = if self.c.is_none() { "scaled:" } else { "" };
        format!("logistic:{scaled}{}:{features}", Choice::tag(choice, self.holdout))
    }

    fn memory(&self, size: Size) -> u64 {
        let [samples, dim, outputs, _] = size.of();
        let parameters = (samples.min(dim) + 16).saturating_mul(outputs);
        // Remembered steps, what a step needs, and sums of every thread.
        let copies = 2 * MEMORY as u64 + 12 + rayon::current_num_threads() as u64;
        // The matrix, its vectors, and what the decomposition needs.
        let square = size.square().saturating_mul(4);
        let numbers = parameters.saturating_mul(copies).saturating_add(square);
        Size::bytes(numbers, size_of::<f64>()).saturating_add(BLOCKS)
    }

    fn learn<'a>(
        &self,
        train: Samples<'a>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Fitted<LogisticSolution>> {
        train.needs_classes(NAME)?;
        let unit = if self.c.is_none() { 1. / mean_variance(train.rows()) } else { 1. };
        let path = dinov2_path();
        let values = self.c.as_deref().unwrap_or(&path);
        let candidates = Candidates {
            setting: "c",
            values,
            holdout: self.holdout,
            seed,
            scores: ScoreKind::Probabilities,
        };
        let choice = candidates.choose(train, &mut watch.part(0., 0.9), |trial, judge, watch| {
            let mut problem = LogisticProblem::prepare(trial.fitted, KEPT, &mut watch.part(0., 0.1))?;
            let mut watch = watch.part(0.1, 1.);
            for (index, c) in trial.values.iter().enumerate() {
                let mut watch = watch.step(index, trial.values.len());
                let solution = problem.fit_watched(c * unit, self.steps, &mut watch)?;
                let mut sample = 0;
                solution.visit(trial.held_out.rows(), &mut watch, &mut |scores| {
                    judge.hear((index, sample), &solution.columns, scores);
                    sample += 1;
                })?;
            }
            Ok(())
        })?;
        let mut watch = watch.part(0.9, 1.);
        let mut problem = LogisticProblem::prepare(train, KEPT, &mut watch)?;
        let solution = problem.fit_watched(choice.value * unit, self.steps, &mut watch)?;
        Ok(Fitted { solution, choice: Some(choice) })
    }
}

const NAME: &str = "logistic regression";

impl<'a> LogisticProblem<'a> {
    /// Refuses values: they are not classes.
    pub fn new(train: impl Into<Samples<'a>>) -> Result<Self> {
        unwatched(|watch| Self::prepare(train.into(), KEPT, watch))
    }

    /// Keeps turned features if they take no more bytes than that.
    fn prepare(train: Samples<'a>, keep: usize, watch: &mut Watch<'_>) -> Result<Self> {
        train.needs_some()?;
        train.needs_classes(NAME)?;
        let (learnt, rows) = (Learnt::new(train), train.rows());
        let principal = Principal::of(rows, watch)?;
        let width = principal.directions.ncols().max(1).next_multiple_of(WIDTH);
        // Fewer samples than dimensions have fewer directions, in which they are small.
        let small = rows.len() < rows.dim() || rows.len() * width * size_of::<f32>() <= keep;
        Ok(Self {
            train: rows,
            kept: small.then(|| principal.coordinates(rows, width)),
            principal,
            width,
            variance: mean_variance(rows),
            path: Path {
                point: vec![0.; (width + 1) * learnt.columns.len()],
                last: None,
                before: None,
                lbfgs: Lbfgs::default(),
            },
            labels: learnt.own,
            columns: learnt.columns,
        })
    }

    /// Fits with one `C`, from the solution of the fit before.
    pub fn fit(&mut self, c: f64, steps: usize) -> Result<LogisticSolution> {
        unwatched(|watch| self.fit_watched(c, steps, watch))
    }

    /// The same, for a caller who may stop it.
    pub fn fit_watched(&mut self, c: f64, steps: usize, watch: &mut Watch<'_>) -> Result<LogisticSolution> {
        positive("c", c)?;
        let losses = Losses {
            rows: match &self.kept {
                Some(rows) => Turned::Kept(rows),
                None => Turned::ByWeights { features: self.train, principal: &self.principal },
            },
            width: self.width,
            labels: &self.labels,
            classes: self.columns.len(),
        };
        let samples = self.labels.len().max(1) as f64;
        // Everything but the intercepts, which come last.
        let penalised = losses.weights();
        let mut point = self.path.start(c);
        let mut lbfgs = std::mem::take(&mut self.path.lbfgs);
        if let Some(last) = self.path.last {
            lbfgs.add_quadratic(&vec![1. / c - 1. / last; penalised]);
        }
        let mut inverse = losses.curvature(&point, &mut watch.part(0., 0.))?;
        inverse[..penalised].iter_mut().for_each(|curvature| *curvature += 1. / c);
        // Of weights, in units of the features.
        let floors = [(0..penalised, self.variance), (penalised..inverse.len(), 1.)];
        for (parameters, unit) in floors {
            let floor = 1e-9 * samples * unit;
            inverse[parameters].iter_mut().for_each(|curvature| *curvature = 1. / curvature.max(floor));
        }
        let stop = Stop { steps, decrement: TOLERANCE };
        let mut evaluations = 0.;
        lbfgs.minimise(&mut point, &inverse, stop, |point, gradient| {
            let at = |evaluations: f64| evaluations / (evaluations + HALF_WAY);
            let mut watch = watch.part(at(evaluations), at(evaluations + 1.));
            evaluations += 1.;
            let mut value = losses.evaluate(point, gradient, &mut watch)?;
            for (parameter, gradient) in point[..penalised].iter().zip(gradient) {
                value += 0.5 * parameter * parameter / c;
                *gradient += parameter / c;
            }
            Ok(value)
        })?;
        self.path.lbfgs = lbfgs;
        let before = std::mem::replace(&mut self.path.point, point);
        self.path.before = self.path.last.replace(c).map(|last| (last, before));
        Ok(self.solution())
    }

    /// Back from principal directions.
    fn solution(&self) -> LogisticSolution {
        let Principal { mean, directions } = &self.principal;
        let (weights, intercept) = self.path.point.split_at(self.width * self.columns.len());
        let weights = MatRef::from_column_major_slice(weights, self.width, self.columns.len());
        LogisticSolution {
            mean: mean.clone(),
            weights: product(directions.as_ref(), weights.subrows(0, directions.ncols())),
            intercept: intercept.to_vec(),
            columns: self.columns.clone(),
        }
    }
}

impl Path {
    /// Where to start: the last two solutions, continued in `log C`.
    fn start(&self, c: f64) -> Vec<f64> {
        let (Some(last), Some((before, point))) = (self.last, &self.before) else {
            return self.point.clone();
        };
        // Not far beyond what is known.
        let share = ((c / last).ln() / (last / before).ln()).clamp(-1., 1.);
        match share.is_finite() {
            true => {
                self.point.iter().zip(point).map(|(last, before)| last + share * (last - before)).collect()
            }
            false => self.point.clone(),
        }
    }
}

/// The probability of every class.
impl Solution for LogisticSolution {
    fn columns(&self) -> &Columns {
        &self.columns
    }

    fn visit(&self, queries: Rows<'_>, watch: &mut Watch<'_>, take: &mut Take<'_>) -> Result<usize> {
        let queries = queries.of_length(self.mean.len())?;
        let mut scores = vec![0.; self.intercept.len()];
        for (first, block) in queries.blocks(block_rows(queries.dim())) {
            watch.at(first as f64 / queries.len() as f64)?;
            let products = product(centred(block, &self.mean).as_ref(), self.weights.as_ref());
            for row in 0..block.len() {
                for (column, (score, intercept)) in scores.iter_mut().zip(&self.intercept).enumerate() {
                    *score = products[(row, column)] + intercept;
                }
                softmax(&mut scores);
                take(&scores);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::{Features, Scores};

    /// Both minima are as near as the decrement says.
    const SAME: f64 = 1e-5;

    fn features(samples: usize, dim: usize) -> Features {
        let wave =
            |row: usize, column: usize| ((row * (3 * column + 7)) as f32 * 0.61).sin() * (1 + column) as f32;
        let values = Array2::from_shape_fn((samples, dim), |(row, column)| {
            wave(row, column) + 2. * f32::from(u8::from(row % 3 == column)) + 5.
        });
        Features::labelled(values, (0..samples).map(|row| row % 3).collect(), 3).unwrap()
    }

    fn scores(train: &Features, keep: usize, c: &[f64]) -> Scores {
        let mut last = None;
        unwatched(|watch| {
            let mut problem = LogisticProblem::prepare(train.into(), keep, watch)?;
            c.iter().try_for_each(|&c| problem.fit_watched(c, 1000, watch).map(|fit| last = Some(fit)))
        })
        .unwrap();
        last.unwrap().scores(train.values()).unwrap()
    }

    #[test]
    fn features_that_are_not_kept_give_the_same_probabilities() {
        let train = features(700, 20);
        let path = [0.01, 0.1, 1.];
        let worst = (scores(&train, usize::MAX, &path) - scores(&train, 0, &path)).mapv(f64::abs);
        let worst = worst.into_iter().fold(0., f64::max);
        assert!(worst < SAME, "{worst:e}");
    }

    /// Columns of zeros change no probability, but let the directions be those of samples.
    #[test]
    fn few_samples_in_many_dimensions_give_the_same_probabilities() {
        let narrow = features(12, 6);
        let wide = Array2::from_shape_fn((12, 40), |(row, column)| match column < 6 {
            true => narrow.values()[(row, column)],
            false => 0.,
        });
        let wide = Features::new(wide, narrow.targets().clone()).unwrap();
        let worst = (scores(&narrow, usize::MAX, &[0.3]) - scores(&wide, 0, &[0.3])).mapv(f64::abs);
        let worst = worst.into_iter().fold(0., f64::max);
        assert!(worst < SAME, "{worst:e}");
    }
}
