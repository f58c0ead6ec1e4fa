//! The `[train]` and `[predictor]` tables of a recipe.

use std::path::PathBuf;
use std::time::Duration;

use candle_core::DType;
use lejepa_model::{EncoderShape, check_widths};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The `[predictor]` table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PredictorConfig {
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
}

/// What the encoder computes in; weights, loss and optimiser are f32 in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Half the bits with the range of f32, for graphics cards.
    Bf16,
}

impl Precision {
    pub(crate) fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::Bf16 => DType::BF16,
        }
    }
}

/// The `[train]` table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoopConfig {
    /// Passes over the data; a fraction is fine. 100 if `steps` is absent too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// All steps, instead of passes over the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Samples per step.
    pub batch: usize,
    /// Samples that the encoder sees at a time; less memory, the same step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_batch: Option<usize>,
    /// Share of the patches that is hidden from a vision transformer.
    pub masking: f64,
    /// What the encoder computes in.
    pub precision: Precision,
    /// Run folder whose encoder is trained further, instead of a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<PathBuf>,
    /// Most steps between checkpoints.
    pub checkpoint_every: u64,
    /// Most minutes between checkpoints.
    pub checkpoint_minutes: f64,
    /// Checkpoints that stay, the best one besides.
    pub keep: usize,
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self {
            epochs: None,
            steps: None,
            batch: 128,
            micro_batch: None,
            masking: 0.,
            precision: Precision::default(),
            init: None,
            checkpoint_every: 100,
            checkpoint_minutes: 10.,
            keep: 2,
        }
    }
}

fn refuse<T>(field: &'static str, expected: &str, got: String) -> Result<T> {
    Err(Error::Setting { field, expected: expected.into(), got })
}

impl PredictorConfig {
    /// Refuses layers without width, and those that nothing could hold.
    pub fn check(&self) -> Result<()> {
        Ok(check_widths("predictor.hidden", &self.hidden, format!("{:?}", self.hidden))?)
    }
}

impl LoopConfig {
    /// Passes over the data where neither these nor steps are given.
    pub(crate) const EPOCHS: f64 = 100.;
    /// More is a slip of the finger.
    const MOST_EPOCHS: f64 = 1e9;

    /// All steps, where an epoch has so many: at least one.
    pub(crate) fn total_steps(&self, steps_per_epoch: u64) -> u64 {
        let epochs = self.epochs.unwrap_or(Self::EPOCHS);
        self.steps.unwrap_or_else(|| (epochs * steps_per_epoch as f64).round().max(1.) as u64)
    }

    /// Whether a run that has taken so many steps, and saved the last checkpoint so long ago, is to save one.
    pub(crate) fn is_checkpoint_due(&self, taken: u64, since: Duration) -> bool {
        taken.is_multiple_of(self.checkpoint_every) || since.as_secs_f64() >= 60. * self.checkpoint_minutes
    }

    /// Refuses values out of range, or without meaning for the encoder.
    pub fn check(&self, encoder: &EncoderShape) -> Result<()> {
        if self.batch < 2 {
            return refuse("train.batch", "at least 2", self.batch.to_string());
        }
        if let (Some(_), Some(steps)) = (self.epochs, self.steps) {
            return refuse("train.steps", "absent when train.epochs is given", steps.to_string());
        }
        if let Some(epochs) = self.epochs.filter(|epochs| !(*epochs > 0. && *epochs <= Self::MOST_EPOCHS)) {
            let expected = format!("a positive number up to {}", Self::MOST_EPOCHS);
            return refuse("train.epochs", &expected, epochs.to_string());
        }
        for (field, count) in [
            ("train.steps", self.steps.unwrap_or(1)),
            ("train.checkpoint_every", self.checkpoint_every),
            ("train.keep", self.keep as u64),
            ("train.micro_batch", self.micro_batch.unwrap_or(1) as u64),
        ] {
            if count == 0 {
                return refuse(field, "at least 1", "0".into());
            }
        }
        if !(self.checkpoint_minutes > 0. && self.checkpoint_minutes.is_finite()) {
            let got = self.checkpoint_minutes.to_string();
            return refuse("train.checkpoint_minutes", "a positive number", got);
        }
        if !(0. ..1.).contains(&self.masking) {
            return refuse("train.masking", "from 0 up to, but not including, 1", self.masking.to_string());
        }
        if self.masking > 0. && !encoder.has_maskable_patches() {
            return refuse("train.masking", "0 for an encoder without patches", self.masking.to_string());
        }
        Ok(())
    }
}
