//! Keys of a recipe that are changed from outside of it.

use toml::{Table, Value};

use crate::{Error, Result};

/// A value typed on the command line: `loss.lambda=0.1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// The key's path.
    pub key: String,
    /// The value; nothing removes the key.
    pub value: Option<Value>,
}

pub(crate) const COMMAND_LINE: &str = "--set or a flag";

/// Keys of which a recipe has one: whoever gives one means it in place of the other.
const ALTERNATIVES: [[&str; 2]; 2] = [["train.epochs", "train.steps"], ["train.steps", "train.epochs"]];

impl Override {
    /// Reads `key=value`; what is not a TOML value is taken as text.
    pub fn parse(typed: &str) -> Result<Self> {
        let Some((key, value)) = typed.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
            let problem = format!("expected key=value, got: {typed}");
            return Err(Error::Config { origin: COMMAND_LINE.into(), problem });
        };
        let value = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .filter(|table| table.len() == 1)
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| Value::String(value.into()));
        Ok(Self { key: key.trim().into(), value: Some(value) })
    }

    /// Whether a key is this one or below it.
    pub(crate) fn covers(&self, key: &str) -> bool {
        is_within(key, &self.key)
    }

    /// Whether a key is this one, below or above it: a table appears with its first key.
    pub(crate) fn touches(&self, key: &str) -> bool {
        self.covers(key) || is_within(&self.key, key)
    }
}

fn is_within(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Changes a recipe, in the order of the changes.
pub(crate) fn apply(recipe: &mut Table, changes: &[Override]) -> Result<()> {
    for [given, replaced] in ALTERNATIVES {
        if changes.iter().any(|change| change.key == given) {
            put(recipe, &Override { key: replaced.into(), value: None })?;
        }
    }
    changes.iter().try_for_each(|change| put(recipe, change))
}

fn put(recipe: &mut Table, change: &Override) -> Result<()> {
    let mut parts: Vec<&str> = change.key.split('.').collect();
    let Some(last) = parts.pop() else { return Ok(()) };
    let mut place = recipe;
    for part in parts {
        let entry = place.entry(part).or_insert_with(|| Value::Table(Table::new()));
        place = entry.as_table_mut().ok_or_else(|| Error::Config {
            origin: COMMAND_LINE.into(),
            problem: format!("`{part}` in `{}` is not a table", change.key),
        })?;
    }
    match &change.value {
        Some(value) => place.insert(last.into(), value.clone()),
        None => place.remove(last),
    };
    Ok(())
}
