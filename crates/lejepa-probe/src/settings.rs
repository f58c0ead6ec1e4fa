//! Checks of a probe's settings, each with one sentence for all probes.

use crate::{Error, Result};

/// A count, of which there must be one at least.
pub(crate) fn whole(setting: &'static str, value: usize) -> Result<()> {
    match value {
        0 => Err(Error::NotPositive { setting, wanted: "at least 1", got: "0".into() }),
        _ => Ok(()),
    }
}

/// A number above 0.
pub(crate) fn positive(setting: &'static str, value: f64) -> Result<()> {
    all_positive(setting, &[value])
}

/// Numbers above 0, one at least.
pub(crate) fn all_positive(setting: &'static str, values: &[f64]) -> Result<()> {
    match values {
        [] => Err(Error::NothingToChoose { setting }),
        _ if values.iter().all(|value| value.is_finite() && *value > 0.) => Ok(()),
        [value] => Err(Error::NotPositive { setting, wanted: "a positive number", got: value.to_string() }),
        _ => Err(Error::NotPositive { setting, wanted: "positive numbers", got: format!("{values:?}") }),
    }
}

/// A share that leaves something on both sides.
pub(crate) fn share(holdout: f64) -> Result<()> {
    if holdout > 0. && holdout < 1. { Ok(()) } else { Err(Error::Holdout { got: holdout }) }
}
