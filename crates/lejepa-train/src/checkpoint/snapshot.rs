//! A state of a run that is to be saved.

use std::io::Write;
use std::path::Path;

use candle_core::Tensor;
use lejepa_data::{SeenImages, write_atomically};
use safetensors::View;

use super::header::{self, Header};
use super::tensors::{self, Digest};
use super::{CheckpointFile, CheckpointFolder};
use crate::{AdamW, Average, Change, Model, Result, TrainConfig};

/// A state of a run that is to be saved.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Steps that were taken.
    pub step: u64,
    /// Mean loss of the steps since the last checkpoint, if any was taken.
    pub loss: Option<f64>,
    /// The configuration of the run.
    pub config: &'a TrainConfig,
    /// Fingerprint of the training data.
    pub data_fingerprint: &'a str,
    /// The images that the encoder was trained on, as far as that is known.
    pub seen: Option<&'a SeenImages>,
    /// What was changed on the way.
    pub changes: &'a [Change],
    /// The weights.
    pub model: &'a Model,
    /// Averaged weights, if the run has them.
    pub average: Option<&'a Average>,
    /// The optimiser with its state.
    pub optimizer: &'a AdamW,
}

impl Snapshot<'_> {
    /// Writes a checkpoint into a run folder and removes the older ones but for the newest few and the
    /// one of lowest loss.
    pub fn save(&self, run: &Path) -> Result<()> {
        let folder = CheckpointFolder::of(run);
        let path = folder.path_of(self.step);
        write_atomically(&path, |file| self.write(file))?;
        folder.prune(self.config.train.keep)?;
        Ok(())
    }

    /// Writes a checkpoint, tensor by tensor.
    pub(crate) fn write(&self, file: &mut dyn Write) -> std::io::Result<()> {
        let tensors = self.tensors();
        let mut digest = Digest::default();
        tensors.iter().for_each(|(name, tensor)| digest.add(name, &tensor.data()));
        let header = Header {
            format: header::FORMAT,
            program: Some(env!("CARGO_PKG_VERSION").into()),
            step: self.step,
            loss: self.loss,
            data_fingerprint: self.data_fingerprint.into(),
            seen: self.seen.cloned(),
            changes: self.changes.to_vec(),
            blake3: digest.finish(),
            config: self.config.clone(),
        };
        tensors::write(tensors, header.to_text()?, file)
    }

    fn tensors(&self) -> Vec<(String, &Tensor)> {
        let mut tensors: Vec<(String, &Tensor)> = Vec::new();
        for (part, parameters) in self.model.parts() {
            tensors.extend(parameters.tensors().map(|(name, tensor)| (format!("{part}.{name}"), tensor)));
        }
        for (part, parameters) in self.average.iter().flat_map(|average| average.parts()) {
            let names = parameters.tensors();
            tensors.extend(names.map(|(name, tensor)| (format!("average.{part}.{name}"), tensor)));
        }
        tensors.extend(self.optimizer.state().map(|(name, tensor)| (format!("optimizer.{name}"), tensor)));
        tensors
    }
}

/// Which of these files go when the newest `keep` and the one of lowest loss stay.
pub(super) fn dispensable(files: &[CheckpointFile], keep: usize) -> Vec<&CheckpointFile> {
    let older = &files[..files.len().saturating_sub(keep)];
    let loss = |file: &CheckpointFile| file.loss.filter(|loss| loss.is_finite());
    let best = files
        .iter()
        .filter(|file| loss(file).is_some())
        .min_by(|a, b| a.loss.partial_cmp(&b.loss).unwrap_or(std::cmp::Ordering::Equal))
        .map(|file| file.step);
    older.iter().filter(|file| Some(file.step) != best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_and_the_best_stay() {
        let file = |step, loss| CheckpointFile { step, loss, path: Default::default() };
        let steps = |files: &[CheckpointFile], keep| -> Vec<u64> {
            dispensable(files, keep).iter().map(|file| file.step).collect()
        };
        let files = [file(10, Some(3.)), file(20, Some(1.)), file(30, Some(2.)), file(40, None)];
        assert_eq!(steps(&files, 2), [10], "20 is the best, 30 and 40 the newest");
        assert_eq!(steps(&files, 1), [10, 30]);
        assert_eq!(steps(&files, 9), [0u64; 0]);
        assert_eq!(steps(&[file(0, None), file(10, Some(f64::NAN)), file(20, None)], 1), [0, 10]);
    }
}
