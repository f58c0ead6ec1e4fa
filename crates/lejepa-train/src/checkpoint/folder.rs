//! The checkpoints of a run, by step.

use std::path::{Path, PathBuf};

use super::Checkpoint;
use super::header::Header;
use super::snapshot::dispensable;
use super::tensors::Beginning;
use crate::put_aside::put_aside;
use crate::{Error, Result, TrainConfig};

/// `RUN/checkpoints`.
#[derive(Debug, Clone)]
pub struct CheckpointFolder {
    path: PathBuf,
}

/// One file of the folder.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointFile {
    /// Steps that were taken.
    pub step: u64,
    /// Mean loss of the steps before it, where its header can be read and says so.
    pub loss: Option<f64>,
    /// The file.
    pub path: PathBuf,
}

impl CheckpointFolder {
    /// That of a run.
    pub fn of(run: &Path) -> Self {
        Self { path: run.join("checkpoints") }
    }

    /// Where the checkpoint of a step is or will be.
    pub fn path_of(&self, step: u64) -> PathBuf {
        self.path.join(format!("step-{step:08}.safetensors"))
    }

    /// All checkpoints, the newest last; empty if there is no folder.
    pub fn list(&self) -> Result<Vec<CheckpointFile>> {
        let failed =
            |source| Error::Data(lejepa_data::Error::Io { action: "list", path: self.path.clone(), source });
        let entries = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let step = name
                .and_then(|name| name.strip_prefix("step-")?.strip_suffix(".safetensors"))
                .and_then(|digits| digits.parse().ok());
            if let Some(step) = step {
                files.push(CheckpointFile { step, loss: read_loss(&path), path });
            }
        }
        files.sort_by_key(|file| file.step);
        Ok(files)
    }

    /// The configuration of the newest checkpoint that is not damaged, without its tensors.
    pub(crate) fn newest_config(&self) -> Result<Option<TrainConfig>> {
        for file in self.list()?.iter().rev() {
            let header = Beginning::read(&file.path)
                .and_then(|beginning| Ok(Header::parse(beginning.entry()?)))
                .map_err(|failure| super::failed(&file.path, failure))
                .and_then(|header| header.map_err(|problem| super::unreadable(&file.path, problem)));
            match header {
                Ok(header) => return Ok(Some(header.config)),
                Err(Error::Checkpoint { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The newest checkpoint that is not damaged. Newer ones that are, are put aside under another name and told
    /// to `damaged`; if there are only such, the run cannot go on. Neither can it from one of another version:
    /// that is healthy, and the one before it is not where the run stopped.
    pub fn newest(&self, damaged: &mut dyn FnMut(&Path, &Error)) -> Result<Option<Checkpoint>> {
        let mut files = self.list()?;
        while let Some(file) = files.pop() {
            match Checkpoint::read(&file.path) {
                Ok(checkpoint) => return Ok(Some(checkpoint)),
                Err(error @ Error::Checkpoint { .. }) if !files.is_empty() => {
                    damaged(&put_aside(&file.path, "damaged")?, &error);
                }
                Err(Error::Checkpoint { path, problem }) => return Err(Error::OnlyDamaged { path, problem }),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Puts checkpoints after a step aside under another name: the run goes on from there on another way.
    pub(crate) fn put_aside_after(&self, step: u64) -> Result<()> {
        for file in self.list()?.into_iter().filter(|file| file.step > step) {
            put_aside(&file.path, "left")?;
        }
        Ok(())
    }

    /// The checkpoint of lowest loss, or the newest if none says its loss.
    pub fn best(&self) -> Result<Option<CheckpointFile>> {
        let mut files = self.list()?;
        let worst =
            |file: &CheckpointFile| file.loss.filter(|loss| loss.is_finite()).unwrap_or(f64::INFINITY);
        // The sort is stable: of equal ones the newest comes last.
        files.sort_by(|a, b| worst(b).total_cmp(&worst(a)));
        Ok(files.pop())
    }

    pub(super) fn prune(&self, keep: usize) -> Result<()> {
        for old in dispensable(&self.list()?, keep) {
            // One file too many does no harm.
            let _ = std::fs::remove_file(&old.path);
        }
        Ok(())
    }
}

/// The loss in a file's header; nothing where that cannot be read.
fn read_loss(path: &Path) -> Option<f64> {
    let beginning = Beginning::read(path).ok()?;
    Header::parse_any(beginning.entry().ok()?).ok()?.0.loss
}
