//! As much of a configuration as this version understands.

use serde_json::{Map, Value};

use crate::TrainConfig;

/// A configuration of any version without the keys that this one does not know or reads otherwise, and their names.
pub(super) fn understood(config: Value) -> (TrainConfig, Vec<String>) {
    let mut left_out = Vec::new();
    let Value::Object(tables) = config else { return (TrainConfig::default(), vec!["config".into()]) };
    let mut kept = Map::new();
    for (name, value) in tables {
        if fits(&mut kept, &name, value.clone()) {
            continue;
        }
        let Value::Object(fields) = value else {
            left_out.push(name);
            continue;
        };
        let mut known = Map::new();
        for (field, value) in fields {
            known.insert(field.clone(), value);
            if !fits(&mut kept, &name, Value::Object(known.clone())) {
                known.remove(&field);
                left_out.push(format!("{name}.{field}"));
            }
        }
        if known.is_empty() {
            left_out.retain(|field| !field.starts_with(&format!("{name}.")));
            left_out.push(name);
        }
    }
    (parse(&kept).unwrap_or_default(), left_out)
}

/// Adds a table, if the configuration can be read with it.
fn fits(kept: &mut Map<String, Value>, name: &str, value: Value) -> bool {
    let mut tried = kept.clone();
    tried.insert(name.into(), value);
    let fits = parse(&tried).is_some();
    if fits {
        *kept = tried;
    }
    fits
}

fn parse(tables: &Map<String, Value>) -> Option<TrainConfig> {
    serde_json::from_value(Value::Object(tables.clone())).ok()
}
