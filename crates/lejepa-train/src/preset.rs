//! Presets of the `[views]` table: `views.preset` names one, and is replaced by all of its keys.

use lejepa_data::ViewsConfig;
use toml::{Table, Value};

use crate::{Error, Result};

/// Replaces `views.preset` by the keys of the preset; keys that the recipe gives itself win.
pub(crate) fn spell_out(recipe: &mut Table) -> Result<()> {
    let Some(views) = recipe.get_mut("views").and_then(Value::as_table_mut) else { return Ok(()) };
    let Some(name) = views.remove("preset") else { return Ok(()) };
    let invalid = |problem: String| Err(Error::Config { origin: "views.preset".into(), problem });
    let Value::String(name) = name else { return invalid(format!("expected a name or a file, got: {name}")) };
    let built_in = ViewsConfig::PRESETS.iter().find(|(known, _)| *known == name);
    let text = match built_in {
        Some((_, text)) => (*text).to_string(),
        None if name.ends_with(".toml") => std::fs::read_to_string(&name)
            .map_err(|source| lejepa_data::Error::Io { action: "read", path: (&name).into(), source })?,
        None => {
            let known: Vec<&str> = ViewsConfig::PRESETS.iter().map(|(known, _)| *known).collect();
            return invalid(format!("expected {} or a .toml file, got: {name}", known.join(", ")));
        }
    };
    let invalid = |error: toml::de::Error| Error::Config { origin: name.clone(), problem: error.to_string() };
    toml::from_str::<ViewsConfig>(&text).map_err(invalid)?;
    let mut merged: Table = toml::from_str(&text).map_err(invalid)?;
    overlay(&mut merged, std::mem::take(views));
    *views = merged;
    Ok(())
}

/// Puts the values of one table over another, table by table.
fn overlay(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}
