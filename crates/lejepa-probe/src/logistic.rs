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

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Side};
use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::centred::{centred, mean, product};
use crate::choice::Candidates;
use crate::features::same_dimensions;
use crate::lbfgs::{Lbfgs, Stop};
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

/// Newton's decrement at which a fit ends, relative to the value: probabilities are then off by some 1e-5.
const TOLERANCE: f64 = 1e-10;
/// Rows that are worked on at once: they and their products stay in a core's cache.
const BLOCK: usize = 128;

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
    /// `(samples, dim + 1)`: centred, in principal directions, and a one for the intercept.
    rows: Vec<f64>,
    /// Positions in `known`.
    labels: Vec<usize>,
    /// Classes that have samples.
    known: Vec<usize>,
    /// All classes.
    classes: usize,
    mean: Vec<f64>,
    /// `(dim, dim)`: principal directions as columns.
    rotation: Mat<f64>,
    /// The last solution: `(dim + 1, known classes)`, row by row.
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
        let mut rows = Vec::with_capacity(samples * (dim + 1));
        for sample in 0..samples {
            rows.extend((0..dim).map(|column| rotated[(sample, column)]));
            rows.push(1.);
        }
        let point = vec![0.; (dim + 1) * known.len()];
        let classes = train.targets().outputs();
        Ok(Self {
            rows,
            labels,
            known,
            classes,
            mean,
            rotation,
            point,
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
        let (classes, samples) = (self.known.len(), self.labels.len().max(1) as f64);
        let width = self.mean.len() + 1;
        // Everything but the intercepts, which come last.
        let penalised = (width - 1) * classes;
        let mut point = self.start(c);
        let mut lbfgs = std::mem::take(&mut self.lbfgs);
        if let Some(last) = self.last {
            lbfgs.add_quadratic(&vec![1. / c - 1. / last; penalised]);
        }
        let mut inverse = self.diagonal(&point);
        inverse[..penalised].iter_mut().for_each(|curvature| *curvature += 1. / c);
        inverse.iter_mut().for_each(|curvature| *curvature = 1. / curvature.max(1e-9 * samples));
        let stop = Stop { steps, decrement: TOLERANCE };
        lbfgs.minimise(&mut point, &inverse, stop, |point, gradient| {
            let mut value = self.evaluate(point, gradient);
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

    /// The diagonal of the Hessian of all losses: `sum_i x_ij^2 p_ic (1 - p_ic)`.
    fn diagonal(&self, point: &[f64]) -> Vec<f64> {
        let (classes, width) = (self.known.len(), self.mean.len() + 1);
        let parameters = MatRef::from_row_major_slice(point, width, classes);
        let blocks = self.rows.par_chunks(BLOCK * width).zip(self.labels.par_chunks(BLOCK));
        let none = || Mat::<f64>::zeros(width, classes);
        let sum = blocks
            .fold(none, |mut sum, (rows, labels)| {
                let squares: Vec<f64> = rows.iter().map(|value| value * value).collect();
                let squares = MatRef::from_row_major_slice(&squares, labels.len(), width);
                let rows = MatRef::from_row_major_slice(rows, labels.len(), width);
                let mut scores = Mat::zeros(labels.len(), classes);
                matmul(scores.as_mut(), Accum::Replace, rows, parameters, 1., Par::Seq);
                residuals(&mut scores, labels);
                // Either p (1 - p) or, with a residual of p - 1, the same.
                let spread = Mat::from_fn(labels.len(), classes, |row, class| {
                    scores[(row, class)].abs() * (1. - scores[(row, class)].abs())
                });
                matmul(sum.as_mut(), Accum::Add, squares.transpose(), spread.as_ref(), 1., Par::Seq);
                sum
            })
            .reduce(none, |left, right| left + right);
        (0..width)
            .flat_map(|row| (0..classes).map(move |class| (row, class)))
            .map(|entry| sum[entry])
            .collect()
    }

    /// The sum of all losses and its gradient, block of rows by block of rows.
    fn evaluate(&self, point: &[f64], gradient: &mut [f64]) -> f64 {
        let (classes, width) = (self.known.len(), self.mean.len() + 1);
        let parameters = MatRef::from_row_major_slice(point, width, classes);
        let blocks = self.rows.par_chunks(BLOCK * width).zip(self.labels.par_chunks(BLOCK));
        let none = || (0., Mat::<f64>::zeros(width, classes));
        let (value, sum) = blocks
            .fold(none, |(value, mut sum), (rows, labels)| {
                let rows = MatRef::from_row_major_slice(rows, labels.len(), width);
                let mut scores = Mat::zeros(labels.len(), classes);
                matmul(scores.as_mut(), Accum::Replace, rows, parameters, 1., Par::Seq);
                let value = value + residuals(&mut scores, labels);
                matmul(sum.as_mut(), Accum::Add, rows.transpose(), scores.as_ref(), 1., Par::Seq);
                (value, sum)
            })
            .reduce(none, |(left, sum), (right, other)| (left + right, sum + other));
        for (row, gradients) in gradient.chunks_mut(classes).enumerate() {
            gradients.iter_mut().enumerate().for_each(|(class, gradient)| *gradient = sum[(row, class)]);
        }
        value
    }

    /// Back from centred principal directions.
    fn solution(&self) -> LogisticSolution {
        let (dim, classes) = (self.mean.len(), self.known.len());
        let parameters = MatRef::from_row_major_slice(&self.point, dim + 1, classes);
        let weights = product(self.rotation.as_ref(), parameters.subrows(0, dim));
        let intercept = (0..classes)
            .map(|class| {
                let of_mean: f64 =
                    self.mean.iter().enumerate().map(|(row, mean)| mean * weights[(row, class)]).sum();
                parameters[(dim, class)] - of_mean
            })
            .collect();
        LogisticSolution { weights, intercept, known: self.known.clone(), classes: self.classes }
    }
}

/// Scores become `softmax - one-hot`; returns the sum of the losses, to the last digit even where they are
/// next to nothing.
fn residuals(scores: &mut Mat<f64>, labels: &[usize]) -> f64 {
    let classes = scores.ncols();
    let mut value = 0.;
    for (row, &label) in labels.iter().enumerate() {
        let best = (0..classes).fold(0, |best, class| match scores[(row, class)] > scores[(row, best)] {
            true => class,
            false => best,
        });
        let (largest, own) = (scores[(row, best)], scores[(row, label)]);
        let mut others = 0.;
        for class in 0..classes {
            let power = (scores[(row, class)] - largest).exp();
            scores[(row, class)] = power;
            others += if class == best { 0. } else { power };
        }
        value += largest - own + others.ln_1p();
        (0..classes).for_each(|class| scores[(row, class)] /= 1. + others);
        scores[(row, label)] -= 1.;
    }
    value
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
