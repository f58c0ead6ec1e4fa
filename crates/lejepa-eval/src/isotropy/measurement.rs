//! Bias and variance of one probe at one setting.

use lejepa_probe::{Scores, Targets, accuracy, predicted};
use serde::{Deserialize, Serialize};

use super::moments::{Moments, PointMoments, mean};

/// A probe of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// Ridge; its setting is the penalty relative to the mean eigenvalue of `X^T X`, 0 for OLS.
    Ridge,
    /// Plain k-NN; its setting is `k`.
    Knn,
    /// Radius k-NN; its setting is relative to the root of the mean squared distance.
    Radius,
    /// Nadaraya-Watson with a Gaussian kernel; its setting is relative to the same.
    Kernel,
}

impl ProbeKind {
    /// In the order of tables.
    pub(crate) const ALL: [Self; 4] = [Self::Ridge, Self::Knn, Self::Radius, Self::Kernel];

    /// The probe and what its setting is called.
    pub fn title(self, setting: f64) -> String {
        match self {
            Self::Ridge if setting == 0. => "OLS".into(),
            Self::Ridge => format!("ridge (lambda {setting})"),
            Self::Knn => format!("k-NN (k = {setting})"),
            Self::Radius => format!("radius k-NN (radius {setting})"),
            Self::Kernel => format!("kernel (bandwidth {setting})"),
        }
    }
}

/// What was measured, over all draws; means over test points and outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The probe.
    pub probe: ProbeKind,
    /// What it was set to, as [`ProbeKind`] says.
    pub setting: f64,
    /// Of the mean prediction from the targets. On real data this holds the noise of the targets, which no
    /// probe can predict.
    pub squared_bias: f64,
    /// The same without what a finite number of draws adds.
    pub corrected_squared_bias: f64,
    /// Of the predictions over draws.
    pub variance: f64,
    /// Squared bias plus variance.
    pub mean_squared_error: f64,
    /// Share of test points with the right class, a mean over draws; none for values.
    pub accuracy: Option<f64>,
    /// Share of test points without a neighbour within the radius, which take their nearest; none for others.
    pub alone: Option<f64>,
    /// Ridge: total variance of the coefficients over draws, a mean over outputs.
    pub coefficient_variance: Option<f64>,
}

/// Gathers one setting's predictions.
pub(crate) struct Gathering {
    probe: ProbeKind,
    setting: f64,
    moments: Moments,
    draws: usize,
    accuracies: f64,
    alone: usize,
    points: usize,
}

/// A measurement with what differences are tested on.
pub(crate) struct Measured {
    pub(crate) measurement: Measurement,
    /// Corrected, at every test point.
    pub(crate) squared_bias: Vec<f64>,
    /// What every draw contributes to the variance of the coefficients.
    pub(crate) coefficient_spread: Vec<f64>,
}

impl Gathering {
    pub(crate) fn new(probe: ProbeKind, setting: f64, targets: &Targets) -> Self {
        let (moments, points) = (Moments::new(targets.one_hot()), targets.len());
        Self { probe, setting, moments, draws: 0, accuracies: 0., alone: 0, points }
    }

    /// One draw's scores, and how many test points had no neighbour.
    pub(crate) fn add(&mut self, scores: &Scores, alone: usize, targets: &Targets) {
        self.moments.add(scores);
        self.draws += 1;
        self.alone += alone;
        if let Targets::Classes { labels, .. } = targets {
            self.accuracies += accuracy(&predicted(scores), labels);
        }
    }

    pub(crate) fn finish(self, targets: &Targets) -> Measured {
        let PointMoments { squared_bias, corrected_squared_bias, variance, squared_error } =
            self.moments.points();
        let draws = self.draws.max(1) as f64;
        let classes = matches!(targets, Targets::Classes { .. });
        let radius = self.probe == ProbeKind::Radius;
        let measurement = Measurement {
            probe: self.probe,
            setting: self.setting,
            squared_bias: mean(&squared_bias),
            corrected_squared_bias: mean(&corrected_squared_bias),
            variance: mean(&variance),
            mean_squared_error: mean(&squared_error),
            accuracy: classes.then(|| self.accuracies / draws),
            alone: radius.then(|| self.alone as f64 / (draws * self.points.max(1) as f64)),
            coefficient_variance: None,
        };
        Measured { measurement, squared_bias: corrected_squared_bias, coefficient_spread: Vec::new() }
    }
}
