//! A session of a run: from its beginning or a checkpoint to its end or an interruption.

use std::path::Path;

use crate::continuation::is_about_data;
use crate::{
    Change, Checkpoint, CheckpointFolder, DeviceChoice, Error, Override, Result, Schedule, TrainConfig,
};

/// What a session is asked to do.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// The configuration.
    pub config: &'a TrainConfig,
    /// The run folder.
    pub run: &'a Path,
    /// Where it computes.
    pub device: DeviceChoice,
    /// Keys that are to differ from what they were in the run so far; they have their new values in `config`.
    pub changes: &'a [Override],
    /// The checkpoint to go on from, 0 for the beginning; the newest if absent.
    pub from_step: Option<u64>,
}

impl<'a> Session<'a> {
    /// Starts a run, or goes on with it as it is.
    pub fn new(config: &'a TrainConfig, run: &'a Path, device: DeviceChoice) -> Self {
        Self { config, run, device, changes: &[], from_step: None }
    }

    /// Where the run goes on. Damaged checkpoints that were passed over are told to `damaged`.
    pub(crate) fn checkpoint(&self, damaged: &mut dyn FnMut(&Path, &Error)) -> Result<Option<Checkpoint>> {
        let folder = CheckpointFolder::of(self.run);
        let found = match self.from_step {
            None => folder.newest(damaged)?,
            Some(step) => {
                let known = folder.list()?;
                match known.iter().find(|file| file.step == step) {
                    Some(file) => Some(Checkpoint::read(&file.path)?),
                    None if step == 0 => None,
                    None => {
                        let steps: Vec<String> = known.iter().map(|file| file.step.to_string()).collect();
                        return Err(Error::Setting {
                            field: "--from-step",
                            expected: format!("0 or a checkpoint of the run ({})", steps.join(", ")),
                            got: step.to_string(),
                        });
                    }
                }
            }
        };
        let has_begun = found.is_some() || self.run.join("config.toml").exists();
        if !self.changes.is_empty() && !has_begun {
            return Err(Error::NoCheckpoint { path: self.run.into() });
        }
        Ok(found)
    }

    /// Whether there may be images that the checkpoint does not know.
    pub(crate) fn may_bring_images(&self, checkpoint: Option<&Checkpoint>) -> bool {
        checkpoint.is_none() || self.changes.iter().any(is_about_data)
    }

    /// What a user should know about changes; an error if they leave nothing to do.
    pub(crate) fn notes(
        &self,
        checkpoint: &Checkpoint,
        changes: &[Change],
        schedule: &Schedule,
        steps_per_epoch: u64,
    ) -> Result<Vec<String>> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let (taken, total) = (checkpoint.step, schedule.total);
        if total < taken {
            return Err(Error::Setting {
                field: "train.steps or train.epochs",
                expected: format!("at least the {taken} steps that were taken"),
                got: total.to_string(),
            });
        }
        let mut notes: Vec<String> = changes.iter().map(|change| format!("changed: {change}")).collect();
        let is_of_schedule =
            |change: &Change| change.key.starts_with("optimizer.") || change.key.starts_with("train.");
        if changes.iter().any(is_of_schedule) && taken < total {
            let earlier = &checkpoint.config;
            let is_the_same_epoch =
                !changes.iter().any(|change| ["data", "train.batch"].contains(&change.key.as_str()));
            let before = earlier.schedule(earlier.total_steps(steps_per_epoch)).at(taken);
            let before = if is_the_same_epoch { format!(" instead of {before:.3e}") } else { String::new() };
            notes.push(format!(
                "the schedule is that of {total} steps from the beginning: the learning rate goes on at {:.3e}{before} \
                 and ends at {:.3e}",
                schedule.at(taken),
                schedule.last
            ));
        }
        Ok(notes)
    }
}
