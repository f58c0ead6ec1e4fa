//! Weights of an encoder alone as a safetensors file with timm's names: from others, and for others.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use lejepa_data::{Error as DataError, Lock};
use lejepa_model::{EncoderConfig, ExternalWeights, FoundPositions, ImageSize, KnownGrid};

use crate::divergence::first_not_finite;
use crate::{AdamW, CheckpointFolder, Error, Model, Result, Snapshot, TrainConfig};

/// What an import made of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Tensors that were left out.
    pub dropped: BTreeSet<String>,
    /// What the position embedding was taken for; nothing for encoders without one.
    pub positions: Option<FoundPositions>,
    /// Numbers of the encoder.
    pub parameters: usize,
}

/// Makes a run folder before its first step, whose encoder has the weights of a file. `grid` is that of the
/// file's position embedding, where somebody says it.
pub fn import(config: &TrainConfig, weights: &Path, grid: Option<ImageSize>, run: &Path) -> Result<Import> {
    config.check()?;
    let _lock = Lock::of_folder(run)?;
    if !CheckpointFolder::of(run).list()?.is_empty() {
        return Err(Error::Begun { path: run.into() });
    }
    crate::pretrain::refuse_foreign(run)?;
    let tensors = read(weights)?;
    let model = Model::new(config, &Device::Cpu)?;
    let parameters = model.encoder_parameters();
    if let (Some(grid), None) = (grid, model.encoder().shape().position_grid()) {
        let expected = "absent for an encoder without position embedding".into();
        return Err(Error::Setting { field: "--grid", expected, got: grid.to_string() });
    }
    let known = KnownGrid { given: grid, native: native_grid(&config.encoder) };
    let fitted = ExternalWeights::fit(tensors, &model.encoder().shape(), parameters, known)?;
    parameters.load(&fitted.tensors)?;
    if let Some(name) = first_not_finite(&model)? {
        let problem = format!("not finite: {name}");
        return Err(DataError::Invalid { format: "safetensors", path: weights.into(), problem }.into());
    }
    crate::run_config::write(config, run)?;
    Snapshot {
        step: 0,
        loss: None,
        config,
        data_fingerprint: "",
        seen: None,
        changes: &[],
        model: &model,
        average: None,
        optimizer: &AdamW::new(&config.optimizer),
    }
    .save(run)?;
    Ok(Import {
        dropped: fitted.dropped,
        positions: fitted.positions,
        parameters: parameters.trainable_count(),
    })
}

/// The grid that an architecture has at its own image size, if its name says one.
fn native_grid(encoder: &EncoderConfig) -> Option<ImageSize> {
    let native = EncoderConfig { image_size: None, ..encoder.clone() };
    native.resolve().ok()?.position_grid()
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
pub fn encode_weights<'a>(weights: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<Vec<u8>> {
    let mut tensors = Vec::new();
    for (name, tensor) in weights {
        tensors.push((name.to_string(), tensor.to_dtype(DType::F32)?.to_device(&Device::Cpu)?));
        if let Some(layer) = name.strip_suffix(".running_mean") {
            tensors.push((format!("{layer}.num_batches_tracked"), Tensor::new(0i64, &Device::Cpu)?));
        }
    }
    // What PyTorch's own tools write and some of them insist on.
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    Ok(safetensors::serialize(tensors, Some(metadata)).map_err(candle_core::Error::from)?)
}
