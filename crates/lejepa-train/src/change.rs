//! The history of a run's configuration: keys that were changed when it went on.
//!
//! It travels in the checkpoints; `RUN/changes.jsonl` shows it, and the first step under a change has it in
//! `metrics.jsonl`.

use std::fmt;
use std::path::Path;

use lejepa_data::write_atomically;
use serde::{Deserialize, Serialize};

use crate::config_difference::Difference;
use crate::put_aside::put_aside;
use crate::{Error, Result};

/// A key that was changed when a run went on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Steps that were taken before.
    pub step: u64,
    /// The key's path.
    pub key: String,
    /// Its value before, as in a recipe; nothing where it was absent.
    pub before: Option<String>,
    /// Its value from then on.
    pub after: Option<String>,
}

impl Change {
    pub(crate) fn of(difference: Difference, step: u64) -> Self {
        let shown = |value: Option<toml::Value>| value.map(|value| value.to_string());
        Self { step, key: difference.key, before: shown(difference.there), after: shown(difference.here) }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".into());
        let (before, after) = (shown(&self.before), shown(&self.after));
        write!(formatter, "`{}` from {before} to {after} after step {}", self.key, self.step)
    }
}

/// Writes the history of a run. One that was left, for a way without changes, is put aside.
pub(crate) fn write_changes(changes: &[Change], run: &Path) -> Result<()> {
    let path = run.join("changes.jsonl");
    if changes.is_empty() {
        if path.symlink_metadata().is_ok() {
            put_aside(&path, "left")?;
        }
        return Ok(());
    }
    let lines: serde_json::Result<Vec<String>> = changes.iter().map(serde_json::to_string).collect();
    let lines = lines.map_err(|error| Error::Config {
        origin: "the history of the run".into(),
        problem: error.to_string(),
    })?;
    Ok(write_atomically(&path, |file| lines.iter().try_for_each(|line| writeln!(file, "{line}")))?)
}
