//! Weights of an encoder alone as a safetensors file with timm's names: from others, and for others.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use lejepa_data::Error as DataError;
use lejepa_model::{ForeignWeights, ImageSize, Parameters};

use crate::{AdamW, CheckpointFolder, Error, Model, Result, Snapshot, TrainConfig};

/// What an import made of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Tensors that were left out.
    pub dropped: BTreeSet<String>,
    /// The grid from which the position embedding was resampled.
    pub resampled_from: Option<ImageSize>,
    /// Numbers of the encoder.
    pub parameters: usize,
}

/// Makes a run folder before its first step, whose encoder has the weights of a file.
pub fn import(config: &TrainConfig, weights: &Path, run: &Path) -> Result<Import> {
    config.check()?;
    if !CheckpointFolder::of(run).list()?.is_empty() {
        return Err(Error::OtherRun { path: run.into(), difference: "checkpoints" });
    }
    let tensors = read(weights)?;
    let model = Model::new(config, &Device::Cpu)?;
    let parameters = model.encoder_parameters();
    let fitted = ForeignWeights::fit(tensors, &model.encoder().shape(), parameters)?;
    parameters.load(&fitted.tensors)?;
    crate::pretrain::write_config(config, run)?;
    Snapshot {
        step: 0,
        loss: None,
        config,
        data_fingerprint: "",
        model: &model,
        average: None,
        optimizer: &AdamW::new(&config.optimizer),
    }
    .save(run)?;
    Ok(Import {
        dropped: fitted.dropped,
        resampled_from: fitted.resampled_from,
        parameters: parameters.trainable_count(),
    })
}

fn read(path: &Path) -> Result<HashMap<String, Tensor>> {
    let bytes = std::fs::read(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => DataError::NotFound { path: path.into() },
        _ => DataError::Io { action: "read", path: path.into(), source },
    })?;
    let tensors = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu);
    Ok(tensors.map_err(|error| DataError::Invalid {
        format: "safetensors",
        path: path.into(),
        problem: error.to_string(),
    })?)
}

/// The bytes of a file that timm loads strictly: f32, and the counters that PyTorch expects beside
/// running statistics.
pub fn encode_weights(parameters: &Parameters) -> Result<Vec<u8>> {
    let mut tensors = Vec::new();
    for (name, tensor) in parameters.tensors() {
        tensors.push((name.to_string(), tensor.to_dtype(DType::F32)?.to_device(&Device::Cpu)?));
        if let Some(layer) = name.strip_suffix(".running_mean") {
            tensors.push((format!("{layer}.num_batches_tracked"), Tensor::new(0i64, &Device::Cpu)?));
        }
    }
    // What PyTorch's own tools write and some of them insist on.
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    Ok(safetensors::serialize(tensors, Some(metadata)).map_err(candle_core::Error::from)?)
}
