//! `RUN/config.toml`, the configuration that people see, beside the one that travels in the checkpoints.
//!
//! What may change freely counts as it stands in the file. What decides the result counts as it stands in the newest
//! checkpoint; where the file says something else, somebody has edited it or brought a checkpoint of another run, and
//! nothing is guessed.

use std::path::{Path, PathBuf};

use lejepa_data::{regular_file, write_atomically};
use toml::{Table, Value};

use crate::config_difference::{Difference, decisive_differences};
use crate::continuation::{is_asked_for, is_fixed, with_free_keys_of};
use crate::{Checkpoint, Error, Override, Result, TrainConfig};

const FILE: &str = "config.toml";
/// How the file begins, in every version.
pub(crate) const HEADING: &str = "# The whole configuration of a run of lejepa";
/// How it goes on where every key that could be absent in it was absent on purpose.
const WHOLE: &str = "; what is not in it has its default.\n";

/// The file of a run, as it is; nothing if there is none.
fn read(run: &Path) -> Result<Option<(PathBuf, String)>> {
    let path = run.join(FILE);
    match regular_file::read_to_string(&path) {
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

/// What the file says of a run whose newest checkpoint has `of_run`. In files of earlier versions keys may be absent
/// that are those of the checkpoint; from others somebody has removed them.
fn said(run: &Path, of_run: &TrainConfig) -> Result<Option<TrainConfig>> {
    let Some((path, text)) = read(run)? else { return Ok(None) };
    if text.strip_prefix(HEADING).is_some_and(|rest| rest.starts_with(WHOLE)) {
        return toml::from_str(&text).map(Some).map_err(|error| invalid(&path, &error));
    }
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
/// key. A session that ended as soon as it had changed something has left the file as it was.
pub(crate) fn check(run: &Path, newest: &Checkpoint, asked: &[Override]) -> Result<()> {
    let Some(file) = said(run, &newest.config)? else { return Ok(()) };
    let is_left = |Difference { key, here, .. }: &Difference| {
        let change = newest.changes.iter().rfind(|change| change.key == *key && change.step == newest.step);
        change.is_some_and(|change| change.before == here.as_ref().map(Value::to_string))
    };
    let is_settled = |found: &Difference| is_asked_for(&found.key, asked) || is_left(found);
    match decisive_differences(&newest.config, &file)?.into_iter().find(|found| !is_settled(found)) {
        Some(difference) if is_fixed(&difference) => {
            Err(Error::Fixed { path: run.join(FILE), difference: difference.to_string() })
        }
        Some(difference) => Err(Error::Edited { path: run.join(FILE), difference: difference.to_string() }),
        None => Ok(()),
    }
}

pub(crate) fn write(config: &TrainConfig, run: &Path) -> Result<()> {
    let path = run.join(FILE);
    let text = toml::to_string_pretty(config).map_err(|error| invalid(&path, &error))?;
    Ok(write_atomically(&path, |file| write!(file, "{HEADING}{WHOLE}{text}"))?)
}
