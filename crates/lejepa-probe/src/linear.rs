//! LayerNorm and a linear layer, trained by AdamW, as LeJEPA probes its features.
//!
//! ```text
//! z      = (x - mean(x)) / sqrt(var(x) + 1e-6)        per feature; computed once, the encoder is frozen
//! scores = (gamma * z + beta) W + b                   gamma, beta, W and b are learnt
//! ```
//!
//! Classes are learnt by cross-entropy, values by squared error around their mean and in units of their
//! standard deviation.

use faer::Mat;
use lejepa_data::{Purpose, generator};
use ndarray::{Array2, ArrayView1};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::adamw::{AdamW, schedule};
use crate::choice::Candidates;
use crate::features::same_dimensions;
use crate::layer::{Batch, Layer, Loss};
use crate::{Choice, Error, Features, Result, Scores, Targets};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// Learning rates to choose from.
    pub learning_rates: Vec<f64>,
    /// Share of the training features on which the learning rate is chosen.
    pub holdout: f64,
    /// How often every sample is seen.
    pub epochs: usize,
    /// Samples per step.
    pub batch: usize,
    /// Epochs over which the learning rate rises.
    pub warmup: usize,
    /// Pulls all parameters towards 0.
    #[serde(default = "default_weight_decay")]
    pub weight_decay: f64,
}

fn default_weight_decay() -> f64 {
    1e-6
}

/// A fitted probe.
#[derive(Debug, Clone)]
pub struct LinearSolution {
    layer: Layer,
    /// Mean and standard deviation of every output; 0 and 1 for classes.
    units: Vec<(f64, f64)>,
}

/// timm's.
const LAYER_NORM_EPSILON: f64 = 1e-6;

impl Linear {
    /// `linear:ln:adamw:wd0.000001:100ep:w10:b256:holdout0.1:cls`, with the kind of features
    pub fn protocol(&self, features: &str) -> String {
        let Self { weight_decay, epochs, batch, warmup, holdout, .. } = self;
        format!("linear:ln:adamw:wd{weight_decay}:{epochs}ep:w{warmup}:b{batch}:holdout{holdout}:{features}")
    }

    /// Chooses the learning rate on held-out training features, then fits all of them. Returns the choice too.
    pub fn fit(&self, train: &Features, seed: u64) -> Result<(LinearSolution, Choice)> {
        for (setting, got) in [("epochs", self.epochs), ("batch", self.batch)] {
            if got == 0 {
                return Err(Error::NotPositive { setting, got: 0. });
            }
        }
        let values = &self.learning_rates;
        let candidates = Candidates { setting: "learning_rates", values, holdout: self.holdout, seed };
        let choice = candidates.choose(train, |fitted, held_out, rates| {
            // A rate that diverges is no candidate; that of the final fit is an error.
            let scores = |rate: &f64| match self.train(fitted, *rate, seed) {
                Ok(solution) => solution.scores(held_out.values()),
                Err(Error::Diverged { .. }) => {
                    Ok(Array2::from_elem((held_out.len(), fitted.targets().outputs()), f64::NAN))
                }
                Err(error) => Err(error),
            };
            rates.iter().map(scores).collect()
        })?;
        Ok((self.train(train, choice.value, seed)?, choice))
    }

    /// Trains with a given learning rate.
    pub fn train(&self, train: &Features, rate: f64, seed: u64) -> Result<LinearSolution> {
        if train.is_empty() {
            return Err(Error::NoSamples);
        }
        let (units, one_hot) = (units(train.targets()), train.targets().one_hot());
        let mut layer = Layer::new(train.dim(), units.len());
        let rows = normalised(train.values());
        let loss = match train.targets() {
            Targets::Classes { .. } => Loss::CrossEntropy,
            Targets::Values(_) => Loss::SquaredError,
        };
        let (samples, size) = (train.len(), self.batch.min(train.len()));
        // The last samples of an epoch that do not fill a batch are left out: the next order has others.
        let per_epoch = samples / size;
        let mut optimiser = AdamW::new(layer.parameters.len(), self.weight_decay);
        let mut gradient = vec![0.; layer.parameters.len()];
        let mut order: Vec<usize> = (0..samples).collect();
        for epoch in 0..self.epochs {
            order.shuffle(&mut generator(seed, Purpose::Evaluation, epoch as u64, 2));
            for (index, images) in order.chunks_exact(size).enumerate() {
                let batch = Batch {
                    rows: Mat::from_fn(size, train.dim(), |row, column| rows[(images[row], column)]),
                    targets: Mat::from_fn(size, units.len(), |row, output| {
                        (one_hot[(images[row], output)] - units[output].0) / units[output].1
                    }),
                };
                if !layer.evaluate(&batch, loss, &mut gradient).is_finite() {
                    return Err(Error::Diverged { rate });
                }
                let step = epoch * per_epoch + index;
                let share = schedule(step, self.warmup * per_epoch, self.epochs * per_epoch);
                optimiser.step(&mut layer.parameters, &gradient, rate * share);
            }
        }
        Ok(LinearSolution { layer, units })
    }
}

impl LinearSolution {
    /// The predicted values, or the score of every class before the softmax.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - result: `(queries, outputs)`
    pub fn scores(&self, queries: &Array2<f32>) -> Result<Scores> {
        same_dimensions(self.layer.dim, queries)?;
        let (_, scores) = self.layer.forward(&normalised(queries));
        Ok(Array2::from_shape_fn((queries.nrows(), self.units.len()), |(query, output)| {
            let (mean, unit) = self.units[output];
            mean + unit * scores[(query, output)]
        }))
    }
}

/// Rows of mean 0 and variance 1.
fn normalised(features: &Array2<f32>) -> Mat<f64> {
    let dim = features.ncols() as f64;
    let moments = |row: ArrayView1<'_, f32>| {
        let mean = row.iter().map(|value| f64::from(*value)).sum::<f64>() / dim;
        let variance = row.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / dim;
        (mean, 1. / (variance + LAYER_NORM_EPSILON).sqrt())
    };
    let moments: Vec<(f64, f64)> = features.outer_iter().map(moments).collect();
    Mat::from_fn(features.nrows(), features.ncols(), |row, column| {
        (f64::from(features[(row, column)]) - moments[row].0) * moments[row].1
    })
}

/// Mean and standard deviation of every output of values; 1 for a constant.
fn units(targets: &Targets) -> Vec<(f64, f64)> {
    match targets {
        Targets::Classes { classes, .. } => vec![(0., 1.); *classes],
        Targets::Values(values) => {
            let of = |column: ArrayView1<'_, f64>| {
                let unit = column.std(0.);
                (column.sum() / column.len() as f64, if unit > 0. { unit } else { 1. })
            };
            values.columns().into_iter().map(of).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{accuracy, predicted, r_squared};

    const SETTINGS: Linear = Linear {
        learning_rates: Vec::new(),
        holdout: 0.2,
        epochs: 30,
        batch: 16,
        warmup: 2,
        weight_decay: 1e-6,
    };

    fn values() -> Array2<f32> {
        Array2::from_shape_fn((200, 6), |(row, column)| ((row * (7 * column + 3) + column) % 31) as f32 - 15.)
    }

    #[test]
    fn classes_are_learnt_with_a_rate_that_was_chosen() {
        let values = values();
        let label = |row: ArrayView1<'_, f32>| usize::from(row[0] > row[1]);
        let labels: Vec<usize> = values.outer_iter().map(label).collect();
        let train = Features::labelled(values.clone(), labels.clone(), 3).unwrap();
        let linear = Linear { learning_rates: vec![1e-9, 1e-2], ..SETTINGS };
        let (solution, choice) = linear.fit(&train, 0).unwrap();
        assert_eq!(choice.value, 1e-2);
        let scores = solution.scores(&values).unwrap();
        assert!(accuracy(&predicted(&scores), &labels) > 0.95);
        assert_eq!(linear.fit(&train, 0).unwrap().0.scores(&values).unwrap(), scores, "the same seed");
    }

    #[test]
    fn values_are_learnt_in_their_own_units() {
        let values = values();
        let scaled = normalised(&values);
        let targets = Array2::from_shape_fn((200, 2), |(row, output)| 1e3 + 50. * scaled[(row, output)]);
        let train = Features::new(values.clone(), Targets::Values(targets.clone())).unwrap();
        let linear = Linear { learning_rates: vec![3e-2], ..SETTINGS };
        let (solution, _) = linear.fit(&train, 0).unwrap();
        let explained = r_squared(&solution.scores(&values).unwrap(), &targets);
        assert!(explained.iter().all(|share| *share > 0.99), "{explained:?}");
    }
}
