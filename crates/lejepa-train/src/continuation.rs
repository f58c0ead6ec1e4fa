//! Going on with a run: what may differ from what it was so far.
//!
//! - Threads, looks, checkpoints and the place of the data decide nothing about the weights: they may change freely.
//! - The model is what the checkpoint holds: it cannot change.
//! - Everything else may change if somebody says so, and is written down.

use std::path::Path;

use crate::change::Change;
use crate::config_difference::{Difference, decisive_differences};
use crate::overrides::Override;
use crate::{Checkpoint, Error, LoopConfig, Result, TrainConfig, WatchConfig};

/// What a run goes on with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Continuation<'a> {
    pub(crate) run: &'a Path,
    pub(crate) config: &'a TrainConfig,
    pub(crate) data_fingerprint: &'a str,
    /// What is changed on purpose.
    pub(crate) changes: &'a [Override],
}

impl Continuation<'_> {
    /// What becomes different from here on; an error if somebody has not asked for it or cannot have it.
    pub(crate) fn changes_since(&self, checkpoint: &Checkpoint) -> Result<Vec<Change>> {
        let refuse = |difference: String| Err(Error::OtherRun { path: self.run.into(), difference });
        let mut changes = Vec::new();
        for difference in decisive_differences(&checkpoint.config, self.config)? {
            if !is_asked_for(&difference.key, self.changes) {
                return refuse(format!("another configuration ({difference})"));
            }
            if is_fixed(&difference) {
                return Err(Error::Fixed { path: self.run.into(), difference: difference.to_string() });
            }
            changes.push(Change::of(difference, checkpoint.step));
        }
        if checkpoint.data_fingerprint != self.data_fingerprint {
            if !self.changes.iter().any(is_about_data) {
                return refuse(match checkpoint.data_fingerprint.as_str() {
                    "" => "imported weights and no training data".into(),
                    _ => "other training data".into(),
                });
            }
            let before = &checkpoint.data_fingerprint;
            changes.push(Change {
                step: checkpoint.step,
                key: "data".into(),
                before: Some(before.clone()).filter(|before| !before.is_empty()),
                after: Some(self.data_fingerprint.into()),
            });
        }
        Ok(changes)
    }
}

/// Whether a change may bring other images.
pub(crate) fn is_about_data(change: &Override) -> bool {
    change.key == "data" || change.key.starts_with("data.")
}

/// Whether somebody wants another value of a key.
pub(crate) fn is_asked_for(key: &str, changes: &[Override]) -> bool {
    changes.iter().any(|change| change.touches(key)) || is_the_other_length(key, changes)
}

/// Of epochs and steps, one goes where the other comes.
fn is_the_other_length(key: &str, changes: &[Override]) -> bool {
    let lengths = ["train.epochs", "train.steps"];
    lengths.contains(&key) && changes.iter().any(|change| lengths.contains(&change.key.as_str()))
}

/// Whether it is what the weights in a checkpoint fit, or what they came from.
pub(crate) fn is_fixed(difference: &Difference) -> bool {
    let Difference { key, there, here } = difference;
    let table = key.split('.').next().unwrap_or_default();
    match table {
        "encoder" => key != "encoder.drop_path",
        "projector" | "predictor" => true,
        "averaging" => key == "averaging" && (there.is_none() || here.is_none()),
        _ => key == "train.init",
    }
}

/// A configuration with everything that may change freely as another one has it.
pub(crate) fn with_free_keys_of(mut config: TrainConfig, other: &TrainConfig) -> TrainConfig {
    let LoopConfig { checkpoint_every, checkpoint_minutes, keep, .. } = other.train;
    config.train = LoopConfig { checkpoint_every, checkpoint_minutes, keep, ..config.train };
    config.watch = other.watch.clone();
    let (data, other) = (&mut config.data, &other.data);
    data.workers = other.workers;
    for (path, other) in [(&mut data.path, &other.path), (&mut data.cache, &other.cache)] {
        if path.is_some() && other.is_some() {
            path.clone_from(other);
        }
    }
    if data.mix.len() == other.mix.len() {
        data.mix.iter_mut().zip(&other.mix).for_each(|(source, other)| source.path.clone_from(&other.path));
    }
    config
}

/// A configuration with the same value for everything that may change freely.
pub(crate) fn decisive(config: &TrainConfig) -> TrainConfig {
    let mut config = config.clone();
    let LoopConfig { checkpoint_every, checkpoint_minutes, keep, .. } = LoopConfig::default();
    config.train = LoopConfig { checkpoint_every, checkpoint_minutes, keep, ..config.train };
    config.watch = WatchConfig::default();
    config.data.workers = None;
    // The content is compared by its fingerprint.
    config.data.path = config.data.path.map(|_| Default::default());
    config.data.cache = config.data.cache.map(|_| Default::default());
    config.data.mix.iter_mut().for_each(|source| source.path = Default::default());
    // Absent in runs of versions that did not spell it out.
    config.encoder.set_drop_path(Some(config.encoder.drop_path().unwrap_or(0.)));
    config
}
