//! What is done when a run diverges: the step is gone through again to find the first tensor that is
//! not finite, and the batch is kept for a closer look.
//!
//! ```text
//! RUN/diverged/step-00000042.safetensors    the views, (views, samples, channels, height, width)
//! ```

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use lejepa_data::{Batch, ViewBatch, write_atomically};

use crate::state::Origin;
use crate::{CheckpointFolder, Error, Gradients, Model, Objective, Result, Retry};

/// What went wrong at a step.
pub(crate) struct Divergence {
    pub(crate) step: u64,
    /// The first tensor that is not finite.
    pub(crate) culprit: String,
    /// Where the views of the step are, if it was the step itself that was not finite.
    pub(crate) batch: Option<PathBuf>,
}

/// How much lower the learning rate is that a message speaks of.
const LOWER: f64 = 0.1;

/// The error of a run that diverged, with what is worth a try. The state before the step is of no use for that:
/// its next step is the same again. Of the checkpoints before, the one of lowest loss is the one least spoilt.
pub(crate) fn diverged(origin: &Origin<'_>, divergence: Divergence) -> Error {
    let Divergence { step, culprit, batch } = divergence;
    // Without a list, the beginning is as good a place to go back to.
    let files = CheckpointFolder::of(origin.run).list().unwrap_or_default();
    let earlier = files.iter().filter(|file| file.step < step && file.loss.is_some_and(f64::is_finite));
    let best = earlier.min_by(|a, b| a.loss.partial_cmp(&b.loss).unwrap_or(std::cmp::Ordering::Equal));
    let retry = Retry {
        run: origin.run.into(),
        from_step: best.map_or(0, |file| file.step),
        lr: origin.config.optimizer.lr * LOWER,
    };
    Error::Diverged { step, culprit, batch, retry }
}

/// Whether every value is a finite number.
pub(crate) fn is_finite(tensor: &Tensor) -> Result<bool> {
    Ok(tensor.abs()?.sum_all()?.to_dtype(DType::F64)?.to_scalar::<f64>()?.is_finite())
}

/// The first tensor of a model that is not finite, as it is called in a message.
pub(crate) fn first_not_finite(model: &Model) -> Result<Option<String>> {
    for (part, parameters) in model.parts() {
        for (name, tensor) in parameters.tensors() {
            if !is_finite(tensor)? {
                return Ok(Some(format!("the parameter {part}.{name}")));
            }
        }
    }
    Ok(None)
}

/// The name of the first tensor of a step that is not finite: a parameter, then what the forward pass
/// makes in its order, then a gradient.
pub(crate) fn find_culprit(
    objective: &Objective<'_>,
    batch: &Batch,
    gradients: Option<&Gradients>,
) -> Result<String> {
    if let Some(parameter) = first_not_finite(objective.model)? {
        return Ok(parameter);
    }
    match objective.check(batch) {
        Err(Error::Model(lejepa_model::Error::NotFinite { name })) => return Ok(name),
        Err(Error::Loss(error @ lejepa_loss::Error::NotFinite { .. })) => return Ok(error.to_string()),
        Err(error) => return Err(error),
        Ok(()) => {}
    }
    match gradients.map(Gradients::first_not_finite).transpose()?.flatten() {
        Some(name) => Ok(format!("the gradient of {name}")),
        None => Ok("the loss".into()),
    }
}

/// Keeps the views of a batch, with what went wrong in the file's metadata.
pub(crate) fn save_batch(run: &Path, batch: &Batch, culprit: &str) -> Result<PathBuf> {
    let path = run.join("diverged").join(format!("step-{:08}.safetensors", batch.step));
    let mut tensors = vec![("global".to_string(), views_tensor(&batch.global)?)];
    if batch.local.views > 0 {
        tensors.push(("local".to_string(), views_tensor(&batch.local)?));
    }
    let metadata = HashMap::from([
        ("step".to_string(), batch.step.to_string()),
        ("not_finite".to_string(), culprit.to_string()),
    ]);
    let bytes = safetensors::serialize(tensors, Some(metadata))
        .map_err(|error| Error::Checkpoint { path: path.clone(), problem: error.to_string() })?;
    write_atomically(&path, |file| file.write_all(&bytes))?;
    Ok(path)
}

fn views_tensor(views: &ViewBatch) -> Result<Tensor> {
    let ViewBatch { views, samples, channels, size, pixels } = views;
    let shape: &[usize] = &[*views, *samples, *channels, size.height, size.width];
    Ok(Tensor::from_slice(pixels, shape, &Device::Cpu)?)
}
