//! What has become of the runs of a sweep: `sweep.json` for machines, `sweep.md` for people, written after every run.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use lejepa_data::{regular_file, write_atomically};
use lejepa_train::TrainConfig;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::grid::Point;
use crate::commands::select::ALPHA;
use crate::failure;
use crate::run_folder::Run;
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

/// Whether the folder of a run is of this sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IsOwn {
    Yes,
    No,
}

/// All runs that have ended, in this session and before it.
#[derive(Debug)]
pub(super) struct Record {
    out: PathBuf,
    /// Those of this session.
    entries: Vec<Entry>,
    /// Those of earlier ones, of this grid or another, that were not looked at again yet.
    earlier: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    outcome: Outcome,
    config: TrainConfig,
}

/// What `sweep.json` holds besides the ranking.
#[derive(Deserialize)]
struct Written {
    runs: Vec<Entry>,
    #[serde(default)]
    earlier: Vec<Entry>,
}

const JSON: &str = "sweep.json";
const MARKDOWN: &str = "sweep.md";

impl Record {
    /// With what earlier sweeps into the same folder have written. A file that no sweep has written stays.
    pub(super) fn open(out: &Path) -> Result<Self> {
        let foreign = |path: &Path| anyhow!("not of a sweep, choose another --out: {}", path.display());
        let (json, markdown) = (out.join(JSON), out.join(MARKDOWN));
        let earlier = match regular_file::read(&json) {
            Ok(bytes) => {
                let written: Written = serde_json::from_slice(&bytes).map_err(|_| foreign(&json))?;
                written.runs.into_iter().chain(written.earlier).collect()
            }
            Err(error) if error.kind() == ErrorKind::NotFound => match markdown.symlink_metadata() {
                Ok(_) => return Err(foreign(&markdown)),
                Err(_) => Vec::new(),
            },
            Err(error) => return Err(error).with_context(|| format!("cannot read: {}", json.display())),
        };
        Ok(Self { out: out.into(), entries: Vec::new(), earlier })
    }

    /// Why a run need not be tried again, if so.
    pub(super) fn settled(&self, name: &str, config: &TrainConfig) -> Option<String> {
        let entry = self.earlier.iter().find(|entry| entry.name == name && entry.config == *config)?;
        match &entry.outcome {
            Outcome::Diverged(message) => Some(message.clone()),
            Outcome::Complete | Outcome::Failed(_) | Outcome::Stopped => None,
        }
    }

    /// Whether an earlier session has trained a run of this name and configuration.
    pub(super) fn is_own(&self, name: &str, config: &TrainConfig) -> IsOwn {
        match self.earlier.iter().any(|entry| entry.name == name && entry.config == *config) {
            true => IsOwn::Yes,
            false => IsOwn::No,
        }
    }

    /// Adds a run.
    pub(super) fn add(&mut self, point: &Point, outcome: Outcome) {
        self.earlier.retain(|entry| entry.name != point.name);
        self.entries.push(Entry { name: point.name.clone(), outcome, config: point.config.clone() });
    }

    /// Whether a run ended with an error that need not come again.
    pub(super) fn has_failures(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.outcome, Outcome::Failed(_)))
    }

    /// Ranks the runs that took every step; those that failed may lack anything.
    pub(super) fn select(&self) -> Result<Selection> {
        let complete = self.entries.iter().filter(|entry| entry.outcome == Outcome::Complete);
        let read = |Entry { name, .. }: &Entry| Run::read(&self.out.join(name)).with_context(|| name.clone());
        Selection::of(complete.map(read).collect::<Result<_>>()?, ALPHA)
    }

    /// Writes both files; `missing` runs have not been tried yet. What cannot be ranked is kept all the same.
    pub(super) fn write(&self, missing: usize) -> Result<()> {
        let selection = self.select().map_err(|error| failure::sentence(&error));
        let (ranking, table) = match &selection {
            Ok(selection) => (selection.to_json(), selection.markdown()),
            Err(reason) => (json!({ "error": reason }), format!("- not ranked: {reason}\n")),
        };
        let json = json!({
            "complete": missing == 0,
            "runs": self.entries,
            "selection": ranking,
            "earlier": self.earlier,
        });
        let json = serde_json::to_string_pretty(&json)?;
        write_atomically(&self.out.join(JSON), |file| writeln!(file, "{json}"))?;
        let failed = self.entries.iter().filter_map(|Entry { name, outcome, .. }| match outcome {
            Outcome::Diverged(message) | Outcome::Failed(message) => {
                Some(format!("- `{name}` failed: {message}\n"))
            }
            Outcome::Complete | Outcome::Stopped => None,
        });
        let missing = match missing {
            0 => String::new(),
            missing => format!("- runs that have not ended yet: {missing}\n"),
        };
        let markdown = format!("# Sweep\n\n{table}{}{missing}", failed.collect::<String>());
        write_atomically(&self.out.join(MARKDOWN), |file| file.write_all(markdown.as_bytes()))?;
        Ok(())
    }
}
