//! Probes on one shape of the features, over the same draws and test points as on all others.

use lejepa_probe::{Features, Targets};
use ndarray::{Array2, Axis};
use rand::seq::index::sample;

use super::measurement::{Gathering, Measured};
use super::moments::mean;
use super::neighbourhood::Bank;
use super::principal::Principal;
use super::random::{Stream, stream};
use super::ridge_path::{RidgeQueries, coefficient_spread};
use super::variant::Variant;
use super::{Isotropy, ProbeKind};
use crate::Result;

/// Training sets and test points, the same for all shapes.
pub(crate) struct Trial<'a> {
    settings: &'a Isotropy,
    /// Penalties that can be solved.
    lambdas: Vec<f64>,
    /// Whitened, `(samples, directions)`.
    train: Array2<f64>,
    train_targets: &'a Targets,
    /// Whitened, `(points, directions)`.
    pub(crate) test: Array2<f64>,
    test_targets: Targets,
    /// Training samples of each draw.
    pub(crate) samples: usize,
    /// Their rows.
    draws: Vec<Vec<usize>>,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(
        settings: &'a Isotropy,
        principal: &Principal,
        train: &'a Features,
        test: &Features,
    ) -> Self {
        let seed = settings.seed;
        let samples = settings.samples.min(train.len() / 2);
        let rows = |draw| sample(&mut stream(seed, Stream::Samples, draw), train.len(), samples).into_vec();
        let points = settings.test_points.min(test.len());
        let mut points = sample(&mut stream(seed, Stream::TestPoints, 0), test.len(), points).into_vec();
        points.sort_unstable();
        let solvable = samples > principal.variances.len() + 1;
        Self {
            settings,
            lambdas: settings.lambdas.iter().copied().filter(|lambda| *lambda > 0. || solvable).collect(),
            train: principal.whitened(train.values()),
            train_targets: train.targets(),
            test: principal.whitened(&test.values().select(Axis(0), &points)),
            test_targets: select(test.targets(), &points),
            samples,
            draws: (0..settings.draws).map(rows).collect(),
        }
    }

    /// Every probe at every setting on one shape.
    pub(crate) fn measure(&self, variant: &Variant) -> Result<Vec<Measured>> {
        let (train, test) = (variant.apply(&self.train), variant.apply(&self.test));
        let asked = RidgeQueries::new(test.view());
        let test = test.mapv(f64::from);
        // Mean variance is 1: squared distances have mean 2 d.
        let unit = (2. * train.ncols() as f64).sqrt();
        let gathering = |probe, setting| Gathering::new(probe, setting, &self.test_targets);
        let mut ridge: Vec<Gathering> =
            self.lambdas.iter().map(|&lambda| gathering(ProbeKind::Ridge, lambda)).collect();
        let mut coefficients: Vec<Vec<Array2<f64>>> = vec![Vec::new(); ridge.len()];
        let mut others: Vec<Gathering> = Vec::new();
        for rows in &self.draws {
            let values = train.select(Axis(0), rows);
            let drawn = Features::new(values, select(self.train_targets, rows))?;
            for ((&lambda, ridge), coefficients) in self.lambdas.iter().zip(&mut ridge).zip(&mut coefficients)
            {
                let answer = asked.ask(&drawn, lambda)?;
                ridge.add(&answer.scores, 0, &self.test_targets);
                coefficients.push(answer.coefficients);
            }
            let features = drawn.values().mapv(f64::from);
            let targets = drawn.targets().one_hot();
            let bank = Bank { features: features.view(), targets: targets.view(), unit };
            let scores = self.settings.neighbourhoods.scores(bank, test.view());
            if others.is_empty() {
                others = scores.iter().map(|scores| gathering(scores.probe, scores.setting)).collect();
            }
            for (other, scores) in others.iter_mut().zip(scores) {
                other.add(&scores.scores, scores.alone, &self.test_targets);
            }
        }
        let ridge = ridge.into_iter().zip(coefficients).map(|(ridge, coefficients)| {
            let mut measured = ridge.finish(&self.test_targets);
            measured.coefficient_spread = coefficient_spread(&coefficients);
            measured.measurement.coefficient_variance = Some(mean(&measured.coefficient_spread));
            measured
        });
        Ok(ridge.chain(others.into_iter().map(|other| other.finish(&self.test_targets))).collect())
    }
}

fn select(targets: &Targets, rows: &[usize]) -> Targets {
    match targets {
        Targets::Classes { labels, classes } => {
            Targets::Classes { labels: rows.iter().map(|&row| labels[row]).collect(), classes: *classes }
        }
        Targets::Values(values) => Targets::Values(values.select(Axis(0), rows)),
    }
}
