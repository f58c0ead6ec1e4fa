//! Checkpoints: one safetensors file with weights, optimiser state and the whole configuration.
//!
//! ```text
//! encoder.{timm name}, projector.{name}
//! optimizer.exp_avg.{name}, optimizer.exp_avg_sq.{name}
//! metadata "lejepa": {"format": 1, "step": .., "data_fingerprint": .., "config": {..}}
//! ```

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use lejepa_data::write_atomically;
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

use crate::{AdamW, Error, Model, Result, TrainConfig};

/// A saved state of a run.
#[derive(Debug)]
pub struct Checkpoint {
    /// Steps that were taken.
    pub step: u64,
    /// The configuration of the run.
    pub config: TrainConfig,
    /// Fingerprint of the training data.
    pub data_fingerprint: String,
    tensors: HashMap<String, Tensor>,
    path: PathBuf,
}

/// A state of a run that is to be saved.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Steps that were taken.
    pub step: u64,
    /// The configuration of the run.
    pub config: &'a TrainConfig,
    /// Fingerprint of the training data.
    pub data_fingerprint: &'a str,
    /// The weights.
    pub model: &'a Model,
    /// The optimiser with its state.
    pub optimizer: &'a AdamW,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    step: u64,
    data_fingerprint: String,
    config: TrainConfig,
}

const FORMAT: u32 = 1;
const HEADER_KEY: &str = "lejepa";
/// Older checkpoints are removed.
const KEEP: usize = 2;

impl Snapshot<'_> {
    /// Writes a checkpoint into a run folder and removes all but the newest few.
    pub fn save(&self, run: &Path) -> Result<()> {
        let Self { step, config, data_fingerprint, model, optimizer } = *self;
        let mut tensors: Vec<(String, &Tensor)> = Vec::new();
        let parts = [("encoder", model.encoder_parameters()), ("projector", model.projector_parameters())];
        for (part, parameters) in parts {
            tensors.extend(parameters.tensors().map(|(name, tensor)| (format!("{part}.{name}"), tensor)));
        }
        tensors.extend(optimizer.state().map(|(name, tensor)| (format!("optimizer.{name}"), tensor)));

        let path = folder(run).join(format!("step-{step:08}.safetensors"));
        let damaged = |problem: String| Error::Checkpoint { path: path.clone(), problem };
        let header = Header {
            format: FORMAT,
            step,
            data_fingerprint: data_fingerprint.into(),
            config: config.clone(),
        };
        let header = serde_json::to_string(&header).map_err(|error| damaged(error.to_string()))?;
        let metadata = HashMap::from([(HEADER_KEY.to_string(), header)]);
        let bytes =
            safetensors::serialize(tensors, Some(metadata)).map_err(|error| damaged(error.to_string()))?;
        write_atomically(&path, |file| file.write_all(&bytes))?;

        for old in list(run)?.into_iter().rev().skip(KEEP) {
            // One file too many does no harm.
            let _ = std::fs::remove_file(old);
        }
        Ok(())
    }
}

impl Checkpoint {
    /// The newest checkpoint of a run folder, or nothing if there is none yet.
    pub fn latest(run: &Path) -> Result<Option<Self>> {
        list(run)?.pop().map(|path| Self::read(&path)).transpose()
    }

    /// The newest checkpoint of a run folder.
    pub fn require(run: &Path) -> Result<Self> {
        if !run.exists() {
            return Err(lejepa_data::Error::NotFound { path: run.into() }.into());
        }
        Self::latest(run)?.ok_or_else(|| Error::NoCheckpoint { path: run.into() })
    }

    fn read(path: &Path) -> Result<Self> {
        let damaged = |problem: String| Error::Checkpoint { path: path.into(), problem };
        let bytes = std::fs::read(path).map_err(|source| lejepa_data::Error::Io {
            action: "read",
            path: path.into(),
            source,
        })?;
        let (_size, metadata) =
            SafeTensors::read_metadata(&bytes).map_err(|error| damaged(error.to_string()))?;
        let header = metadata
            .metadata()
            .as_ref()
            .and_then(|entries| entries.get(HEADER_KEY))
            .ok_or_else(|| damaged(format!("no `{HEADER_KEY}` metadata")))?;
        let header: Header = serde_json::from_str(header).map_err(|error| damaged(error.to_string()))?;
        if header.format != FORMAT {
            return Err(damaged(format!("format {} is not known, expected {FORMAT}", header.format)));
        }
        let tensors = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu)
            .map_err(|error| damaged(error.to_string()))?;
        Ok(Self {
            step: header.step,
            config: header.config,
            data_fingerprint: header.data_fingerprint,
            tensors,
            path: path.into(),
        })
    }

    /// The model with the saved weights.
    pub fn model(&self, device: &Device) -> Result<Model> {
        let damaged = |error: lejepa_model::Error| self.damaged(error.to_string());
        let model = Model::new(&self.config, device)?;
        model.encoder_parameters().load(&self.part("encoder.")).map_err(damaged)?;
        model.projector_parameters().load(&self.part("projector.")).map_err(damaged)?;
        Ok(model)
    }

    /// The optimiser with the saved state.
    pub fn optimizer(&self) -> Result<AdamW> {
        let mut optimizer = AdamW::new(&self.config.optimizer);
        match optimizer.restore(self.step, &self.part("optimizer.")).first() {
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

fn folder(run: &Path) -> PathBuf {
    run.join("checkpoints")
}

/// All checkpoints of a run, the newest last.
fn list(run: &Path) -> Result<Vec<PathBuf>> {
    let folder = folder(run);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(lejepa_data::Error::Io { action: "list", path: folder, source }.into());
        }
    };
    let is_checkpoint = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("step-") && name.ends_with(".safetensors"))
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_checkpoint).collect();
    paths.sort();
    Ok(paths)
}
