//! Defaults that depend on the rest of a recipe. They are spelt out when a recipe is read, so that a run's files
//! say what was done, whatever the defaults of later versions are.

use std::collections::BTreeSet;

use toml::Table;

use crate::overrides::Override;
use crate::{AdamWConfig, LoopConfig, Result, TrainConfig};

const DROP_PATH_KEY: &str = "encoder.drop_path";
const WEIGHT_DECAY_KEY: &str = "optimizer.weight_decay";

/// Keys that nobody gave and whose default is not that of every version: a run that goes on keeps its own value
/// of them. What was assumed is no part of what a configuration says, so that all are equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assumed(BTreeSet<&'static str>);

impl PartialEq for Assumed {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Assumed {
    /// What a recipe leaves open.
    pub(crate) fn of(recipe: &Table) -> Self {
        let is_given = |key: &str| {
            let (table, field) = key.split_once('.')?;
            recipe.get(table)?.get(field)
        };
        Self([DROP_PATH_KEY, WEIGHT_DECAY_KEY].into_iter().filter(|key| is_given(key).is_none()).collect())
    }

    /// The same, less what is given now.
    pub(crate) fn without(&self, given: &[Override]) -> Self {
        let is_open = |key: &&&str| !given.iter().any(|change| change.covers(key));
        Self(self.0.iter().filter(is_open).copied().collect())
    }
}

/// Gives every key its value that a family of encoders or another key decides.
pub(crate) fn spell_out(config: &mut TrainConfig) -> Result<()> {
    if config.train.steps.is_none() {
        config.train.epochs.get_or_insert(LoopConfig::EPOCHS);
    }
    let shape = config.encoder.resolve()?;
    if let Some(probability) = shape.default_drop_path()
        && config.assumed.0.contains(DROP_PATH_KEY)
    {
        config.encoder.set_drop_path(Some(probability));
    }
    if config.assumed.0.contains(WEIGHT_DECAY_KEY) {
        let of_optimizer = AdamWConfig::default().weight_decay;
        config.optimizer.weight_decay = shape.default_weight_decay().unwrap_or(of_optimizer);
    }
    Ok(())
}

/// A configuration for a run that goes on: what nobody gave is as the run has it. Says what is not as it would be
/// in a new run.
pub(crate) fn keep(config: &TrainConfig, of_run: &TrainConfig) -> (TrainConfig, Vec<String>) {
    let (mut kept, mut notes) = (config.clone(), Vec::new());
    let mut note = |key: &str, now: f64, before: f64| {
        if now != before {
            notes.push(format!(
                "`{key}` is not given and stays as in the run: {before} (now the default is {now})"
            ));
        }
    };
    if config.assumed.0.contains(DROP_PATH_KEY) {
        note(DROP_PATH_KEY, drop_path(config), drop_path(of_run));
        kept.encoder.set_drop_path(of_run.encoder.drop_path());
    }
    if config.assumed.0.contains(WEIGHT_DECAY_KEY) {
        note(WEIGHT_DECAY_KEY, config.optimizer.weight_decay, of_run.optimizer.weight_decay);
        kept.optimizer.weight_decay = of_run.optimizer.weight_decay;
    }
    (kept, notes)
}

/// Runs of versions that did not spell it out had none.
fn drop_path(config: &TrainConfig) -> f64 {
    config.encoder.drop_path().unwrap_or(0.)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(overrides: &[&str]) -> TrainConfig {
        let overrides: Vec<Override> =
            overrides.iter().map(|typed| Override::parse(typed).unwrap()).collect();
        TrainConfig::load(None, &overrides).unwrap()
    }

    #[test]
    fn drop_path_and_weight_decay_are_those_of_the_family() {
        let defaults = |arch: &str| {
            let config = load(&[&format!("encoder.arch={arch}")]);
            (config.encoder.drop_path(), config.optimizer.weight_decay)
        };
        assert_eq!(defaults("vit_small_patch16_224"), (Some(0.1), 5e-2));
        assert_eq!(defaults("resnet50"), (None, 5e-4));
        assert_eq!(defaults("convnextv2_tiny"), (None, 5e-2));
        let given = load(&["encoder.arch=resnet18", "optimizer.weight_decay=0.3", "encoder.drop_path=0.2"]);
        assert_eq!((given.encoder.drop_path(), given.optimizer.weight_decay), (Some(0.2), 0.3));
        assert_eq!(load(&["encoder.drop_path=0"]).encoder.drop_path(), Some(0.), "nothing is something");
    }

    #[test]
    fn a_run_of_a_version_with_other_defaults_keeps_them() {
        let now = load(&["encoder.arch=resnet18"]);
        let mut before = now.clone();
        before.optimizer.weight_decay = 5e-2;
        let (kept, notes) = keep(&now, &before);
        assert_eq!(kept, before);
        assert!(notes[0].contains("`optimizer.weight_decay`") && notes[0].contains("0.05"), "{notes:?}");
        let given = load(&["encoder.arch=resnet18", "optimizer.weight_decay=5e-4"]);
        assert_eq!(keep(&given, &before), (given, vec![]), "what is given is meant");

        let mut before = load(&[]);
        before.encoder.set_drop_path(None);
        assert_eq!(keep(&load(&[]), &before).0, before);
    }
}
