//! Multinomial logistic regression, as DINOv2 probes features.
//!
//! ```text
//! minimise  sum_i -log softmax(W x_i + b)[y_i] + |W|^2 / (2 C)     b is not penalised
//! ```
//!
//! Features are centred and turned into the directions of their principal components. That changes neither
//! the penalty nor any probability, but makes the Hessian nearly diagonal, so that L-BFGS on top of its
//! diagonal needs few steps, however badly scaled the features are. A path of values of `C` is fitted in
//! order: each starts where the last two solutions point to, and with the curvature that was learnt there.

use std::collections::BTreeSet;

use faer::{Mat, MatRef, Side};
use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::centred::{centred, mean, product};
use crate::choice::Candidates;
use crate::features::same_dimensions;
use crate::lbfgs::{Lbfgs, Stop};
use crate::losses::Losses;
use crate::skinny::WIDTH;
use crate::{Choice, Error, Features, Result, Scores};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logistic {
    /// Values of `C` to choose from; DINOv2's if absent.
    #[serde(default = "dinov2_path")]
    pub c: Vec<f64>,
    /// Share of the training features on which `C` is chosen.
    pub holdout: f64,
    /// Steps at most for each `C`.
    #[serde(default = "default_steps")]
    pub steps: usize,
}

/// `10^linspace(-6, 5, 45)`.
pub fn dinov2_path() -> Vec<f64> {
    (0..45).map(|index| 10f64.powf(-6. + 11. * f64::from(index) / 44.)).collect()
}

fn default_steps() -> usize {
    1000
}

/// Newton's decrement at which a fit ends, relative to the value: probabilities are then off by less than 1e-5.
const TOLERANCE: f64 = 1e-11;

/// A fitted probe.
#[derive(Debug, Clone)]
pub struct LogisticSolution {
    /// `(dim, known classes)`, for features as they are.
    weights: Mat<f64>,
    intercept: Vec<f64>,
    known: Vec<usize>,
    classes: usize,
}

/// Features prepared for any number of fits.
pub struct LogisticProblem {
    /// Features centred and in principal directions; labels are positions in `known`.
    losses: Losses,
    /// Classes that have samples.
    known: Vec<usize>,
    /// All classes.
    classes: usize,
    mean: Vec<f64>,
    /// `(dim, dim)`: principal directions as columns.
    rotation: Mat<f64>,
    /// The last solution.
    point: Vec<f64>,
    /// Its `C`, the solution before it and that one's.
    last: Option<f64>,
    before: Option<(f64, Vec<f64>)>,
    lbfgs: Lbfgs,
}

impl Logistic {
    /// `logistic:holdout0.1:cls`, with the kind of features
    pub fn protocol(&self, features: &str) -> String {
        format!("logistic:holdout{}:{features}", self.holdout)
    }

    /// Chooses `C` on held-out training features, then fits all of them. Returns the choice too.
    pub fn fit(&self, train: &Features, seed: u64) -> Result<(LogisticSolution, Choice)> {
        let candidates = Candidates { setting: "c", values: &self.c, holdout: self.holdout, seed };
        let choice = candidates.choose(train, |fitted, held_out, path| {
            let mut problem = LogisticProblem::new(fitted)?;
            path.iter().map(|&c| problem.fit(c, self.steps)?.scores(held_out.values())).collect()
        })?;
        Ok((LogisticProblem::new(train)?.fit(choice.value, self.steps)?, choice))
    }
}

impl LogisticProblem {
    /// Refuses values: they are not classes.
    pub fn new(train: &Features) -> Result<Self> {
        let labels = train.labels("logistic regression")?;
        let known: Vec<usize> = BTreeSet::from_iter(labels.iter().copied()).into_iter().collect();
        let labels: Vec<usize> =
            labels.iter().map(|label| known.partition_point(|class| class < label)).collect();
        let (samples, dim) = train.values().dim();
        let mean = mean(train.values());
        let centred = centred(train.values(), &mean);
        let gram = product(centred.transpose(), centred.as_ref());
        let eigen = gram.self_adjoint_eigen(Side::Lower).map_err(|_| Error::NoEigenvectors)?;
        let rotation = eigen.U().to_owned();
        let rotated = product(centred.as_ref(), rotation.as_ref());
        let width = dim.next_multiple_of(WIDTH);
        let mut rows = vec![0.; samples * width];
        rows.par_chunks_exact_mut(width).enumerate().for_each(|(sample, row)| {
            row.iter_mut().zip(rotated.row(sample).iter()).for_each(|(to, from)| *to = *from as f32);
        });
        let losses = Losses { rows, width, labels, classes: known.len() };
        Ok(Self {
            point: vec![0.; losses.parameters()],
            losses,
            known,
            classes: train.targets().outputs(),
            mean,
            rotation,
            last: None,
            before: None,
            lbfgs: Lbfgs::default(),
        })
    }

    /// Fits with one `C`, from the solution of the fit before.
    pub fn fit(&mut self, c: f64, steps: usize) -> Result<LogisticSolution> {
        if !(c.is_finite() && c > 0.) {
            return Err(Error::NotPositive { setting: "c", got: c });
        }
        let samples = self.losses.labels.len().max(1) as f64;
        // Everything but the intercepts, which come last.
        let penalised = self.losses.weights();
        let mut point = self.start(c);
        let mut lbfgs = std::mem::take(&mut self.lbfgs);
        if let Some(last) = self.last {
            lbfgs.add_quadratic(&vec![1. / c - 1. / last; penalised]);
        }
        let mut inverse = self.losses.curvature(&point);
        inverse[..penalised].iter_mut().for_each(|curvature| *curvature += 1. / c);
        inverse.iter_mut().for_each(|curvature| *curvature = 1. / curvature.max(1e-9 * samples));
        let stop = Stop { steps, decrement: TOLERANCE };
        lbfgs.minimise(&mut point, &inverse, stop, |point, gradient| {
            let mut value = self.losses.evaluate(point, gradient);
            for (parameter, gradient) in point[..penalised].iter().zip(gradient) {
                value += 0.5 * parameter * parameter / c;
                *gradient += parameter / c;
            }
            value
        });
        self.lbfgs = lbfgs;
        let before = std::mem::replace(&mut self.point, point);
        self.before = self.last.replace(c).map(|last| (last, before));
        Ok(self.solution())
    }

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

    /// Back from centred principal directions.
    fn solution(&self) -> LogisticSolution {
        let (weights, intercepts) = self.point.split_at(self.losses.weights());
        let weights = MatRef::from_column_major_slice(weights, self.losses.width, self.known.len());
        let weights = product(self.rotation.as_ref(), weights.subrows(0, self.mean.len()));
        let of_mean = |class: usize| -> f64 {
            self.mean.iter().zip(weights.col(class).iter()).map(|(mean, weight)| mean * weight).sum()
        };
        let intercept =
            intercepts.iter().enumerate().map(|(class, intercept)| intercept - of_mean(class)).collect();
        LogisticSolution { weights, intercept, known: self.known.clone(), classes: self.classes }
    }
}

impl LogisticSolution {
    /// The probability of every class: 0 for a class without training samples.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - result: `(queries, classes)`
    pub fn scores(&self, queries: &Array2<f32>) -> Result<Scores> {
        same_dimensions(self.weights.nrows(), queries)?;
        let rows =
            Mat::from_fn(queries.nrows(), queries.ncols(), |row, column| f64::from(queries[(row, column)]));
        let products = product(rows.as_ref(), self.weights.as_ref());
        let mut scores = Array2::zeros((queries.nrows(), self.classes));
        for (row, mut scores) in scores.outer_iter_mut().enumerate() {
            let score = |known: usize| products[(row, known)] + self.intercept[known];
            let largest = (0..self.known.len()).map(score).fold(f64::NEG_INFINITY, f64::max);
            for (known, &class) in self.known.iter().enumerate() {
                scores[class] = (score(known) - largest).exp();
            }
            let total = scores.sum();
            scores /= total;
        }
        Ok(scores)
    }
}
