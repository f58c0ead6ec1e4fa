//! Where two configurations differ, for a message that names the key and both values.

use toml::Value;

use crate::{Error, Result, TrainConfig};

/// The first key whose value differs, as `loss.lambda is 0.05 there and 0.02 here`; none if all are the same.
pub(crate) fn first_difference(there: &TrainConfig, here: &TrainConfig) -> Result<Option<String>> {
    if there == here {
        return Ok(None);
    }
    let value = |config: &TrainConfig| {
        Value::try_from(config)
            .map_err(|error| Error::Config { origin: "the run".into(), problem: error.to_string() })
    };
    Ok(differing(&value(there)?, &value(here)?, String::new()))
}

fn differing(there: &Value, here: &Value, key: String) -> Option<String> {
    let (Value::Table(left), Value::Table(right)) = (there, here) else {
        return (there != here).then(|| format!("`{key}` is {there} there and {here} here"));
    };
    let below = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
    let of_left = left.iter().find_map(|(name, value)| match right.get(name) {
        Some(other) => differing(value, other, below(name)),
        None => Some(format!("`{}` is {value} there and absent here", below(name))),
    });
    let only_right = || right.iter().find(|(name, _)| !left.contains_key(*name));
    of_left.or_else(|| {
        only_right().map(|(name, value)| format!("`{}` is absent there and {value} here", below(name)))
    })
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
        let said = |left: &[&str], right: &[&str]| first_difference(&load(left), &load(right)).unwrap();
        assert_eq!(said(&[], &[]), None);
        let lambda = said(&["loss.lambda=0.05"], &["loss.lambda=0.02"]);
        assert_eq!(lambda.unwrap(), "`loss.lambda` is 0.05 there and 0.02 here");
        let clip = said(&[], &["optimizer.clip=1.5"]);
        assert_eq!(clip.unwrap(), "`optimizer.clip` is absent there and 1.5 here");
        let clip = said(&["optimizer.clip=1.5"], &[]);
        assert_eq!(clip.unwrap(), "`optimizer.clip` is 1.5 there and absent here");
    }
}
