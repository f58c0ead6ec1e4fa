//! Checkpoints: one safetensors file with weights, averages, optimiser state and the whole configuration.
//!
//! ```text
//! encoder.{timm name}, projector.{name}, predictor.{name}
//! average.encoder.{timm name}, average.projector.{name}
//! optimizer.exp_avg.{name}, optimizer.exp_avg_sq.{name}
//! metadata "lejepa": {"format": 1, "step": .., "loss": .., "data_fingerprint": .., "seen": {..}, "changes": [..], "blake3": .., "config": {..}, "checksum": ..}
//! ```
//!
//! Schedule, sampler and random numbers are functions of seed and step, which are in it. A file that was
//! cut off or changed by a single bit is noticed when it is read. One of another version of this program is not
//! damaged: a run does not go on from it, but its weights can be taken.

mod folder;
mod header;
mod snapshot;
mod tensors;
mod understood;

pub use folder::{CheckpointFile, CheckpointFolder};
pub use snapshot::Snapshot;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use lejepa_data::SeenImages;

use crate::{AdamW, Average, Change, Error, Model, Result, TrainConfig};
use header::{Header, Unreadable};
use tensors::{Beginning, Failure};

/// A saved state of a run.
#[derive(Debug)]
pub struct Checkpoint {
    /// Steps that were taken.
    pub step: u64,
    /// Mean loss of the steps before it, if any was taken.
    pub loss: Option<f64>,
    /// The configuration of the run.
    pub config: TrainConfig,
    /// Fingerprint of the training data.
    pub data_fingerprint: String,
    /// The images that the encoder was trained on, as far as that is known.
    pub seen: Option<SeenImages>,
    /// What was changed on the way.
    pub changes: Vec<Change>,
    /// Keys of the configuration that this version does not know; they are not in `config`.
    pub left_out: Vec<String>,
    /// Whether its format is known; if not, nobody can tell whether it is undamaged.
    pub is_of_this_format: bool,
    tensors: HashMap<String, Tensor>,
    path: PathBuf,
}

impl Checkpoint {
    /// The newest checkpoint of a run folder, of whatever version, for its weights.
    pub fn require(run: &Path) -> Result<Self> {
        if !run.exists() {
            return Err(lejepa_data::Error::NotFound { path: run.into() }.into());
        }
        match CheckpointFolder::of(run).list()?.last() {
            Some(file) => Self::read_any(&file.path),
            None => Err(Error::NoCheckpoint { path: run.into() }),
        }
    }

    /// Reads a file that this version has written, and checks that it is whole.
    pub fn read(path: &Path) -> Result<Self> {
        let beginning = Beginning::read(path).map_err(|failure| failed(path, failure))?;
        let header = beginning.entry().map_err(|failure| failed(path, failure))?;
        let header = Header::parse(header).map_err(|problem| unreadable(path, problem))?;
        Self::with_tensors(path, beginning, header, Vec::new())
    }

    /// Reads a file of any version for its weights, and checks that it is whole as far as that is known of the
    /// version. [`Checkpoint::left_out`] names what was not understood.
    pub fn read_any(path: &Path) -> Result<Self> {
        let beginning = Beginning::read(path).map_err(|failure| failed(path, failure))?;
        let header = beginning.entry().map_err(|failure| failed(path, failure))?;
        let (header, left_out) = Header::parse_any(header).map_err(|problem| unreadable(path, problem))?;
        Self::with_tensors(path, beginning, header, left_out)
    }

    fn with_tensors(
        path: &Path,
        beginning: Beginning,
        header: Header,
        left_out: Vec<String>,
    ) -> Result<Self> {
        let (tensors, digest) = beginning.tensors().map_err(|failure| failed(path, failure))?;
        let is_of_this_format = header.format == header::FORMAT;
        // Nobody knows what a hash of another format is of.
        if is_of_this_format && digest != header.blake3 {
            let problem = "its contents have changed since it was written".into();
            return Err(Error::Checkpoint { path: path.into(), problem });
        }
        Ok(Self {
            step: header.step,
            loss: header.loss,
            config: header.config,
            data_fingerprint: header.data_fingerprint,
            seen: header.seen,
            changes: header.changes,
            left_out,
            is_of_this_format,
            tensors,
            path: path.into(),
        })
    }

    /// The model with the saved weights.
    pub fn model(&self, device: &Device) -> Result<Model> {
        let decides = |key: &&String| {
            let table = key.split('.').next().unwrap_or_default();
            ["config", "encoder", "preprocess", "projector", "predictor"].contains(&table)
        };
        if let Some(key) = self.left_out.iter().find(decides) {
            let problem = format!("this one does not know what its `{key}` means");
            return Err(Error::OtherVersion { path: self.path.clone(), problem });
        }
        let model = Model::new(&self.config, device)?;
        for (part, parameters) in model.parts() {
            let weights = self.part(&format!("{part}."));
            parameters.load(&weights).map_err(|error| self.damaged(error.to_string()))?;
        }
        Ok(model)
    }

    /// Everything but the weights and the optimiser's state, which take memory: for those who have the model.
    pub fn without_tensors(self) -> Self {
        Self { tensors: HashMap::new(), ..self }
    }

    /// The weights of the encoder alone, by timm's names.
    pub fn encoder_weights(&self) -> HashMap<String, Tensor> {
        self.part("encoder.")
    }

    /// The averaged weights of the encoder alone; none if the run has no average.
    pub fn averaged_encoder_weights(&self) -> HashMap<String, Tensor> {
        self.part("average.encoder.")
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

fn failed(path: &Path, failure: Failure) -> Error {
    match failure {
        Failure::Damaged(problem) => Error::Checkpoint { path: path.into(), problem },
        Failure::Io(source) => lejepa_data::Error::Io { action: "read", path: path.into(), source }.into(),
    }
}

fn unreadable(path: &Path, problem: Unreadable) -> Error {
    match problem {
        Unreadable::Damaged(problem) => Error::Checkpoint { path: path.into(), problem },
        Unreadable::OtherVersion(problem) => Error::OtherVersion { path: path.into(), problem },
    }
}
