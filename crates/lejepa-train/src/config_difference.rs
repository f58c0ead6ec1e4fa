//! Where two configurations differ, for messages that name the key and both values, and for the history of a run.

use std::fmt;

use toml::{Table, Value};

use crate::continuation::decisive;
use crate::{Error, Result, TrainConfig};

/// A key whose value differs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) key: String,
    /// Nothing where it is absent.
    pub(crate) there: Option<Value>,
    pub(crate) here: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| value.as_ref().map_or("absent".into(), Value::to_string);
        write!(formatter, "`{}` is {} there and {} here", self.key, shown(&self.there), shown(&self.here))
    }
}

/// All keys whose values differ, in the order of their names.
pub(crate) fn differences(there: &TrainConfig, here: &TrainConfig) -> Result<Vec<Difference>> {
    let mut found = Vec::new();
    if there != here {
        let table = |config: &TrainConfig| {
            Table::try_from(config)
                .map_err(|error| Error::Config { origin: "the run".into(), problem: error.to_string() })
        };
        compare(&table(there)?, &table(here)?, "", &mut found);
    }
    Ok(found)
}

/// Keys that decide the result and differ, with the values as they are written.
pub(crate) fn decisive_differences(there: &TrainConfig, here: &TrainConfig) -> Result<Vec<Difference>> {
    let mut found = differences(&decisive(there), &decisive(here))?;
    if !found.is_empty() {
        let written = differences(there, here)?;
        for difference in &mut found {
            if let Some(as_it_is) = written.iter().find(|other| other.key == difference.key) {
                difference.clone_from(as_it_is);
            }
        }
    }
    Ok(found)
}

fn compare(there: &Table, here: &Table, prefix: &str, found: &mut Vec<Difference>) {
    let only_here = here.keys().filter(|name| !there.contains_key(*name));
    for name in there.keys().chain(only_here) {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match (there.get(name), here.get(name)) {
            (Some(Value::Table(there)), Some(Value::Table(here))) => compare(there, here, &key, found),
            (there, here) if there == here => {}
            (there, here) => found.push(Difference { key, there: there.cloned(), here: here.cloned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Override;

    fn load(overrides: &[&str]) -> TrainConfig {
        let overrides: Vec<Override> =
            overrides.iter().map(|typed| Override::parse(typed).unwrap()).collect();
        TrainConfig::load(None, &overrides).unwrap()
    }

    #[test]
    fn the_key_and_both_values_are_named() {
        let said = |left: &[&str], right: &[&str]| {
            let found = differences(&load(left), &load(right)).unwrap();
            found.iter().map(Difference::to_string).reduce(|all, one| format!("{all}, {one}"))
        };
        assert_eq!(said(&[], &[]), None);
        let lambda = said(&["loss.lambda=0.05"], &["loss.lambda=0.02"]);
        assert_eq!(lambda.unwrap(), "`loss.lambda` is 0.05 there and 0.02 here");
        let clip = said(&[], &["optimizer.clip=1.5"]);
        assert_eq!(clip.unwrap(), "`optimizer.clip` is absent there and 1.5 here");
        let clip = said(&["optimizer.clip=1.5"], &[]);
        assert_eq!(clip.unwrap(), "`optimizer.clip` is 1.5 there and absent here");
        let steps = said(&["train.epochs=2"], &["train.steps=3"]);
        let both = "`train.epochs` is 2.0 there and absent here, `train.steps` is absent there and 3 here";
        assert_eq!(steps.unwrap(), both);
    }
}
