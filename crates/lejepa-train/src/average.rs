//! The average of a model over its steps, which makes the centres where a recipe asks for it.
//!
//! ```text
//! ema: average <- decay * average + (1 - decay) * weights
//! swa: average <- average + (weights - average) / n,     n the number of averaged steps
//! ```
//!
//! The paper needs no teacher; its ablations average the encoder that makes the centres (SWA).

use candle_core::Device;
use lejepa_model::Parameters;
use serde::{Deserialize, Serialize};

use crate::{Error, Model, Result, TrainConfig};

/// The `[averaging]` table of a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum AveragingConfig {
    /// An exponential moving average.
    Ema {
        /// How much of the average stays at every step.
        decay: f64,
    },
    /// The plain mean of all steps from a share of the run on.
    Swa {
        /// The share of the run before the mean begins; until then the centres are those of the
        /// weights of the moment.
        #[serde(default)]
        start: f64,
    },
}

impl AveragingConfig {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        let (field, value) = match *self {
            Self::Ema { decay } => ("averaging.decay", decay),
            Self::Swa { start } => ("averaging.start", start),
        };
        if (0. ..1.).contains(&value) {
            return Ok(());
        }
        let expected = "from 0 up to, but not including, 1".into();
        Err(Error::Setting { field, expected, got: value.to_string() })
    }

    /// The share of the new weights in the average after `taken` of `total` steps; 1 takes them as they are.
    fn share_of_weights(&self, taken: u64, total: u64) -> f64 {
        match *self {
            Self::Ema { decay } => 1. - decay,
            Self::Swa { start } => {
                let first = (start * total as f64).floor() as u64;
                1. / (taken.saturating_sub(first)).max(1) as f64
            }
        }
    }
}

/// Encoder and projector with averaged weights.
#[derive(Debug)]
pub struct Average {
    config: AveragingConfig,
    model: Model,
}

impl Average {
    /// Starts as a copy of the model.
    pub fn new(
        averaging: AveragingConfig,
        config: &TrainConfig,
        model: &Model,
        device: &Device,
    ) -> Result<Self> {
        // What makes the centres passes over no block and has no predictor.
        let mut config = config.clone();
        config.encoder.set_drop_path(None);
        config.predictor = None;
        let average = Self { config: averaging, model: Model::new(&config, device)? };
        for (of_average, of_model) in average.pairs(model) {
            of_average
                .load(&of_model.tensors().map(|(name, tensor)| (name.into(), tensor.clone())).collect())?;
        }
        Ok(average)
    }

    /// The model with averaged weights.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model with averaged weights, for good.
    pub fn into_model(self) -> Model {
        self.model
    }

    /// Takes the weights after `taken` of `total` steps into the average.
    pub fn update(&self, model: &Model, taken: u64, total: u64) -> Result<()> {
        let share = self.config.share_of_weights(taken, total);
        for (of_average, of_model) in self.pairs(model) {
            for (name, variable) in of_model.trainable() {
                let Some(average) = of_average.trainable().get(name) else { continue };
                let weights = variable.as_tensor().detach();
                let kept = (average.as_tensor().detach() * (1. - share))?;
                average.set(&(kept + (weights * share)?)?)?;
            }
            // Running statistics are averages already.
            for (name, variable) in of_model.buffers() {
                if let Some(buffer) = of_average.buffers().get(name) {
                    buffer.set(variable.as_tensor())?;
                }
            }
        }
        Ok(())
    }

    /// The averaged tensors, the part's name first.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &Parameters)> {
        self.model.parts()
    }

    fn pairs<'a>(&'a self, model: &'a Model) -> [(&'a Parameters, &'a Parameters); 2] {
        [
            (self.model.encoder_parameters(), model.encoder_parameters()),
            (self.model.projector_parameters(), model.projector_parameters()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The average of the numbers 1, 2, 3, ..., taken one per step.
    fn averages(config: AveragingConfig, steps: u64) -> Vec<f64> {
        let mut average = 0.;
        (1..=steps)
            .map(|taken| {
                let share = config.share_of_weights(taken, steps);
                average = average * (1. - share) + taken as f64 * share;
                average
            })
            .collect()
    }

    #[test]
    fn swa_is_the_mean_of_the_steps_since_its_start() {
        assert_eq!(averages(AveragingConfig::Swa { start: 0. }, 4), [1., 1.5, 2., 2.5]);
        let late = averages(AveragingConfig::Swa { start: 0.5 }, 4);
        assert_eq!(late, [1., 2., 3., 3.5], "the weights themselves until half of the run is over");
    }

    #[test]
    fn ema_forgets_exponentially() {
        assert_eq!(averages(AveragingConfig::Ema { decay: 0.5 }, 3), [0.5, 1.25, 2.125]);
    }

    #[test]
    fn shares_out_of_range_are_refused() {
        assert!(AveragingConfig::Ema { decay: 1. }.check().is_err());
        assert!(AveragingConfig::Swa { start: -0.1 }.check().is_err());
        assert!(AveragingConfig::Swa { start: f64::NAN }.check().is_err());
        assert!(AveragingConfig::Ema { decay: 0.996 }.check().is_ok());
    }
}
