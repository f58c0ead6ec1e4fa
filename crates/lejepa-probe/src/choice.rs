//! Chooses one of several values of a setting on held-out training features.

use serde::{Deserialize, Serialize};

use crate::metrics::merit;
use crate::split::split;
use crate::{Error, Features, Result, Scores};

/// A chosen value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The value with the highest accuracy, or the lowest squared error, on held-out training features; of
    /// equals the smallest. The middle one if nothing could be held out, as with one sample per class.
    pub value: f64,
    /// Samples on which it was chosen; none if there was nothing to choose or nothing to hold out.
    pub held_out: usize,
}

/// What is chosen, and on how much.
pub(crate) struct Candidates<'a> {
    pub(crate) setting: &'static str,
    pub(crate) values: &'a [f64],
    pub(crate) holdout: f64,
    pub(crate) seed: u64,
}

impl Candidates<'_> {
    /// `scores` fits the first features and gives the scores of the second, for values in rising order.
    pub(crate) fn choose(
        &self,
        train: &Features,
        scores: impl FnOnce(&Features, &Features, &[f64]) -> Result<Vec<Scores>>,
    ) -> Result<Choice> {
        let Self { setting, values, holdout, seed } = *self;
        if !(holdout > 0. && holdout < 1.) {
            return Err(Error::Holdout { got: holdout });
        }
        if let Some(&got) = values.iter().find(|value| !(value.is_finite() && **value > 0.)) {
            return Err(Error::NotPositive { setting, got });
        }
        if train.is_empty() {
            return Err(Error::NoSamples);
        }
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        let middle = *values.get(values.len() / 2).ok_or(Error::NothingToChoose { setting })?;
        let undecided = Choice { value: middle, held_out: 0 };
        if values.len() == 1 {
            return Ok(undecided);
        }
        let (fitted, held_out) = split(train, holdout, seed);
        if held_out.is_empty() || fitted.is_empty() {
            return Ok(undecided);
        }
        let mut best = (f64::NEG_INFINITY, undecided);
        for (value, scores) in values.iter().zip(scores(&fitted, &held_out, &values)?) {
            let merit = merit(&scores, held_out.targets());
            if merit > best.0 {
                best = (merit, Choice { value: *value, held_out: held_out.len() });
            }
        }
        Ok(best.1)
    }
}
