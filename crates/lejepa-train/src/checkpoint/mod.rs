//! Checkpoints: one safetensors file with weights, averages, optimiser state and the whole configuration.
//!
//! ```text
//! encoder.{timm name}, projector.{name}, predictor.{name}
//! average.encoder.{timm name}, average.projector.{name}
//! optimizer.exp_avg.{name}, optimizer.exp_avg_sq.{name}
//! metadata "lejepa": {"format": 1, "step": .., "loss": .., "data_fingerprint": .., "seen": {..}, "blake3": .., "config": {..}}
//! ```
//!
//! Schedule, sampler and random numbers are functions of seed and step, which are in it. A file that was
//! cut off or changed by a single bit is noticed when it is read.

mod folder;
mod header;
mod snapshot;

pub use folder::{CheckpointFile, CheckpointFolder};
pub use snapshot::Snapshot;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use lejepa_data::SeenImages;
use safetensors::SafeTensors;

use crate::{AdamW, Average, Error, Model, Result, TrainConfig};
use header::{Header, digest};

/// A saved state of a run.
#[derive(Debug)]
pub struct Checkpoint {
    /// Steps that were taken.
    pub step: u64,
    /// The configuration of the run.
    pub config: TrainConfig,
    /// Fingerprint of the training data.
    pub data_fingerprint: String,
    /// The images that the encoder was trained on, as far as that is known.
    pub seen: Option<SeenImages>,
    tensors: HashMap<String, Tensor>,
    path: PathBuf,
}

impl Checkpoint {
    /// The newest checkpoint of a run folder.
    pub fn require(run: &Path) -> Result<Self> {
        if !run.exists() {
            return Err(lejepa_data::Error::NotFound { path: run.into() }.into());
        }
        match CheckpointFolder::of(run).list()?.last() {
            Some(file) => Self::read(&file.path),
            None => Err(Error::NoCheckpoint { path: run.into() }),
        }
    }

    /// Reads a file and checks that it is whole.
    pub fn read(path: &Path) -> Result<Self> {
        let damaged = |problem: String| Error::Checkpoint { path: path.into(), problem };
        let bytes = std::fs::read(path).map_err(|source| lejepa_data::Error::Io {
            action: "read",
            path: path.into(),
            source,
        })?;
        let header = Header::parse(&bytes).map_err(damaged)?;
        let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
        let found = digest(file.iter().map(|(name, view)| (name.to_string(), view.data().into())));
        if found != header.blake3 {
            return Err(damaged("its contents have changed since it was written".into()));
        }
        let tensors = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu)
            .map_err(|error| damaged(error.to_string()))?;
        Ok(Self {
            step: header.step,
            config: header.config,
            data_fingerprint: header.data_fingerprint,
            seen: header.seen,
            tensors,
            path: path.into(),
        })
    }

    /// The model with the saved weights.
    pub fn model(&self, device: &Device) -> Result<Model> {
        let model = Model::new(&self.config, device)?;
        for (part, parameters) in model.parts() {
            let weights = self.part(&format!("{part}."));
            parameters.load(&weights).map_err(|error| self.damaged(error.to_string()))?;
        }
        Ok(model)
    }

    /// The weights of the encoder alone, by timm's names.
    pub fn encoder_weights(&self) -> HashMap<String, Tensor> {
        self.part("encoder.")
    }

    /// The average with the saved weights, if the run has one.
    pub fn average(&self, model: &Model, device: &Device) -> Result<Option<Average>> {
        let Some(averaging) = self.config.averaging else { return Ok(None) };
        let average = Average::new(averaging, &self.config, model, device)?;
        for (part, parameters) in average.parts() {
            let weights = self.part(&format!("average.{part}."));
            parameters.load(&weights).map_err(|error| self.damaged(error.to_string()))?;
        }
        Ok(Some(average))
    }

    /// The optimiser with the saved state.
    pub fn optimizer(&self, device: &Device) -> Result<AdamW> {
        let mut state = self.part("optimizer.");
        for tensor in state.values_mut() {
            *tensor = tensor.to_device(device)?;
        }
        let mut optimizer = AdamW::new(&self.config.optimizer);
        match optimizer.restore(self.step, &state).first() {
            Some(name) => Err(self.damaged(format!("unexpected optimizer state: {name}"))),
            None => Ok(optimizer),
        }
    }

    fn damaged(&self, problem: String) -> Error {
        Error::Checkpoint { path: self.path.clone(), problem }
    }

    fn part(&self, prefix: &str) -> HashMap<String, Tensor> {
        let of_part = |(name, tensor): (&String, &Tensor)| {
            name.strip_prefix(prefix).map(|name| (name.to_string(), tensor.clone()))
        };
        self.tensors.iter().filter_map(of_part).collect()
    }
}
