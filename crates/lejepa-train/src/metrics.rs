//! What is written down about every step: `metrics.jsonl`, one JSON object per line.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

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
}

impl MetricsLog {
    /// Opens the log for a run that goes on at `start`: later lines of an interrupted run are dropped.
    pub fn open(path: &Path, start: u64) -> Result<Self> {
        let kept: Vec<String> = match std::fs::read_to_string(path) {
            Ok(text) => text.lines().filter(|line| is_before(line, start)).map(str::to_owned).collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed("read", path, error)),
        };
        lejepa_data::write_atomically(path, |file| {
            kept.iter().try_for_each(|line| writeln!(file, "{line}"))
        })?;
        let file =
            OpenOptions::new().append(true).open(path).map_err(|error| failed("write", path, error))?;
        Ok(Self { path: path.into(), file })
    }

    /// Adds a line.
    pub fn append(&mut self, metrics: &StepMetrics) -> Result<()> {
        let line = serde_json::to_string(metrics).map_err(std::io::Error::from);
        line.and_then(|line| writeln!(self.file, "{line}"))
            .map_err(|error| failed("write", &self.path, error))
    }
}

fn is_before(line: &str, start: u64) -> bool {
    serde_json::from_str::<StepMetrics>(line).is_ok_and(|metrics| metrics.step < start)
}

fn failed(action: &'static str, path: &Path, source: std::io::Error) -> crate::Error {
    lejepa_data::Error::Io { action, path: path.into(), source }.into()
}
