//! What is written down about every step: `metrics.jsonl`, one JSON object per line.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use lejepa_data::regular_file;
use serde::{Deserialize, Serialize};

use crate::{Change, Result};

/// The numbers of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepMetrics {
    /// Steps taken before this one.
    pub step: u64,
    /// All steps of the run.
    #[serde(default)]
    pub total: u64,
    /// Passes over the data before this step.
    pub epoch: f64,
    /// Learning rate.
    pub lr: f64,
    /// The loss.
    pub loss: f64,
    /// Its prediction term.
    pub prediction: f64,
    /// Its SIGReg term.
    pub sigreg: f64,
    /// SIGReg over the value of a perfect Gaussian, where that is known: 1 is best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigreg_over_floor: Option<f64>,
    /// Norm of all gradients together, before clipping.
    #[serde(default)]
    pub gradient_norm: f64,
    /// Samples per second in this step.
    pub images_per_second: f64,
    /// What was changed right before this step, when the run went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
}

/// An open `metrics.jsonl`.
#[derive(Debug)]
pub struct MetricsLog {
    path: PathBuf,
    file: File,
    last_losses: Vec<(u64, f64)>,
}

impl MetricsLog {
    /// Opens the log for a run that goes on at `start`: later lines of an interrupted run are dropped, and the losses
    /// of the `last` ones that are kept are remembered.
    pub(crate) fn open(path: &Path, start: u64, last: usize) -> Result<Self> {
        let whole = match regular_file::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed("read", path, error)),
        };
        let mut last_losses = VecDeque::new();
        lejepa_data::write_atomically(path, |file| {
            for line in whole.split(|&byte| byte == b'\n') {
                // What was cut off or is none of ours is left out.
                let Ok(metrics) = serde_json::from_slice::<StepMetrics>(line) else { continue };
                if metrics.step < start {
                    last_losses.push_back((metrics.step, metrics.loss));
                    last_losses.drain(..last_losses.len().saturating_sub(last));
                    file.write_all(line)?;
                    file.write_all(b"\n")?;
                }
            }
            Ok(())
        })?;
        let file =
            OpenOptions::new().append(true).open(path).map_err(|error| failed("write", path, error))?;
        Ok(Self { path: path.into(), file, last_losses: last_losses.into() })
    }

    /// Steps and losses of the last lines of the sessions before.
    pub(crate) fn take_last_losses(&mut self) -> Vec<(u64, f64)> {
        std::mem::take(&mut self.last_losses)
    }

    /// Adds a line.
    pub fn append(&mut self, metrics: &StepMetrics) -> Result<()> {
        let line = serde_json::to_string(metrics).map_err(std::io::Error::from);
        line.and_then(|line| writeln!(self.file, "{line}"))
            .map_err(|error| failed("write", &self.path, error))
    }
}

fn failed(action: &'static str, path: &Path, source: std::io::Error) -> crate::Error {
    lejepa_data::Error::Io { action, path: path.into(), source }.into()
}
