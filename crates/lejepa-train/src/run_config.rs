//! `RUN/config.toml`, the configuration that people see, beside the one that travels in the checkpoints.
//!
//! What may change freely counts as it stands in the file. What decides the result counts as it stands in the newest
//! checkpoint; where the file says something else, somebody has edited it or brought a checkpoint of another run, and
//! nothing is guessed.

use std::path::{Path, PathBuf};

use lejepa_data::write_atomically;
use toml::{Table, Value};

use crate::config_difference::{Difference, differences};
use crate::continuation::{decisive, is_asked_for, with_free_keys_of};
use crate::{Change, Error, Override, Result, TrainConfig};

const FILE: &str = "config.toml";
/// How the file begins.
pub(crate) const HEADING: &str = "# The whole configuration of a run of lejepa.\n";

/// The file of a run, as it is; nothing if there is none.
fn read(run: &Path) -> Result<Option<(PathBuf, String)>> {
    let path = run.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(lejepa_data::Error::Io { action: "read", path, source }.into()),
    }
}

fn invalid(path: &Path, error: &dyn std::error::Error) -> Error {
    Error::Config { origin: path.display().to_string(), problem: error.to_string() }
}

/// The configuration of a run that has no checkpoint yet.
pub(crate) fn of_new_run(run: &Path) -> Result<Option<TrainConfig>> {
    let Some((path, text)) = read(run)? else { return Ok(None) };
    let config: TrainConfig = toml::from_str(&text).map_err(|error| invalid(&path, &error))?;
    config.check()?;
    Ok(Some(config))
}

/// What the file says of a run whose newest checkpoint has `of_run`: keys that are not in it, as in runs of earlier
/// versions, are those of the checkpoint.
fn said(run: &Path, of_run: &TrainConfig) -> Result<Option<TrainConfig>> {
    let Some((path, text)) = read(run)? else { return Ok(None) };
    let mut whole = Table::try_from(of_run).map_err(|error| invalid(&path, &error))?;
    let file: Table = toml::from_str(&text).map_err(|error| invalid(&path, &error))?;
    // Of epochs and steps, one is absent where the other is given.
    if let (Some(Value::Table(whole)), Some(Value::Table(file))) = (whole.get_mut("train"), file.get("train"))
        && ["epochs", "steps"].iter().any(|length| file.contains_key(*length))
    {
        whole.retain(|key, _| !["epochs", "steps"].contains(&key));
    }
    lay_over(&mut whole, file);
    whole.try_into().map(Some).map_err(|error: toml::de::Error| invalid(&path, &error))
}

fn lay_over(whole: &mut Table, file: Table) {
    for (key, value) in file {
        match (whole.get_mut(&key), value) {
            (Some(Value::Table(whole)), Value::Table(file)) => lay_over(whole, file),
            (_, value) => {
                whole.insert(key, value);
            }
        }
    }
}

/// The configuration of a checkpoint, with what may change freely as the file has it.
pub(crate) fn with_file(run: &Path, of_run: TrainConfig) -> Result<TrainConfig> {
    Ok(match said(run, &of_run)? {
        Some(file) => with_free_keys_of(of_run, &file),
        None => of_run,
    })
}

/// An error if the file decides otherwise than the newest checkpoint, and nobody has asked for another value of that
/// key. `history` are the changes that the checkpoint knows of: the file may still be as it was before the last of a key.
pub(crate) fn check(run: &Path, of_run: &TrainConfig, asked: &[Override], history: &[Change]) -> Result<()> {
    let Some(file) = said(run, of_run)? else { return Ok(()) };
    let is_earlier = |Difference { key, here, .. }: &Difference| {
        let last = history.iter().rfind(|change| change.key == *key);
        last.is_some_and(|change| change.before == here.as_ref().map(Value::to_string))
    };
    let is_settled = |found: &Difference| is_asked_for(&found.key, asked) || is_earlier(found);
    match differences(&decisive(of_run), &decisive(&file))?.into_iter().find(|found| !is_settled(found)) {
        Some(difference) => Err(Error::Edited { path: run.join(FILE), difference: difference.to_string() }),
        None => Ok(()),
    }
}

pub(crate) fn write(config: &TrainConfig, run: &Path) -> Result<()> {
    let path = run.join(FILE);
    let text = toml::to_string_pretty(config).map_err(|error| invalid(&path, &error))?;
    Ok(write_atomically(&path, |file| write!(file, "{HEADING}{text}"))?)
}
