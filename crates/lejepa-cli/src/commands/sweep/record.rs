//! What has become of the runs of a sweep: `sweep.json` for machines, `sweep.md` for people.

use std::path::{Path, PathBuf};

use anyhow::Result;
use lejepa_data::write_atomically;
use lejepa_train::TrainConfig;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::grid::Point;
use crate::selection::Selection;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// All steps were taken.
    Complete,
    /// The loss is not a number any more. The same configuration would do the same again.
    Diverged(String),
    /// Something else went wrong.
    Failed(String),
    /// Ctrl-C.
    Stopped,
}

/// All runs that have ended.
#[derive(Debug)]
pub(super) struct Record {
    out: PathBuf,
    /// Of the last time that this sweep was run.
    earlier: Vec<Entry>,
    entries: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    outcome: Outcome,
    config: TrainConfig,
}

impl Record {
    /// With what an earlier sweep into the same folder has written; if that is damaged, without.
    pub(super) fn open(out: &Path) -> Result<Self> {
        let entries = |text: String| {
            let value: Value = serde_json::from_str(&text).ok()?;
            serde_json::from_value(value.get("runs")?.clone()).ok()
        };
        let earlier = std::fs::read_to_string(out.join("sweep.json")).ok().and_then(entries);
        Ok(Self { out: out.into(), earlier: earlier.unwrap_or_default(), entries: Vec::new() })
    }

    /// Why a run need not be tried again, if so.
    pub(super) fn settled(&self, name: &str, config: &TrainConfig) -> Option<String> {
        let entry = self.earlier.iter().find(|entry| entry.name == name && entry.config == *config)?;
        match &entry.outcome {
            Outcome::Diverged(message) => Some(message.clone()),
            Outcome::Complete | Outcome::Failed(_) | Outcome::Stopped => None,
        }
    }

    /// Adds a run.
    pub(super) fn add(&mut self, point: &Point, outcome: Outcome) {
        self.entries.push(Entry { name: point.name.clone(), outcome, config: point.config.clone() });
    }

    /// The names of all runs that took every step.
    pub(super) fn complete(&self) -> impl Iterator<Item = &str> {
        let complete = self.entries.iter().filter(|entry| entry.outcome == Outcome::Complete);
        complete.map(|entry| entry.name.as_str())
    }

    /// Whether a run ended with an error that need not come again.
    pub(super) fn has_failures(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.outcome, Outcome::Failed(_)))
    }

    /// Writes both files.
    pub(super) fn write(&self, selection: &Selection) -> Result<()> {
        let json = json!({ "runs": self.entries, "selection": selection.to_json() });
        let json = serde_json::to_string_pretty(&json)?;
        write_atomically(&self.out.join("sweep.json"), |file| writeln!(file, "{json}"))?;
        let failed = self.entries.iter().filter_map(|Entry { name, outcome, .. }| match outcome {
            Outcome::Diverged(message) | Outcome::Failed(message) => {
                Some(format!("- `{name}` failed: {message}\n"))
            }
            Outcome::Complete | Outcome::Stopped => None,
        });
        let markdown = format!("# Sweep\n\n{}{}", selection.markdown(), failed.collect::<String>());
        write_atomically(&self.out.join("sweep.md"), |file| file.write_all(markdown.as_bytes()))?;
        Ok(())
    }
}
