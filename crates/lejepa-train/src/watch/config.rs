//! The `[watch]` table of a recipe.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The `[watch]` table of a recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WatchConfig {
    /// Steps between two looks; 0 for never.
    pub every: u64,
    /// Images that are looked at, always the same ones; they are kept in memory, in 8 bits and at the
    /// encoder's size.
    pub images: usize,
    /// Labelled images, seen from the working directory; those of the training data if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// The share of the labelled images that probes are asked about at a time; they learn from the others.
    pub holdout: f64,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self { every: 200, images: 2000, data: None, holdout: 0.25 }
    }
}

impl WatchConfig {
    /// A gauge says nothing about fewer.
    pub(super) const LEAST_IMAGES: usize = 16;

    /// Whether a look is due after so many steps.
    pub(crate) fn is_due(&self, taken: u64) -> bool {
        self.every > 0 && taken.is_multiple_of(self.every)
    }

    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        let refuse = |field, expected: &str, got: String| {
            Err(Error::Setting { field, expected: expected.into(), got })
        };
        if self.images < Self::LEAST_IMAGES {
            return refuse("watch.images", "at least 16", self.images.to_string());
        }
        if !(self.holdout > 0. && self.holdout < 1.) {
            return refuse("watch.holdout", "between 0 and 1", self.holdout.to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_and_unknown_keys_are_refused() {
        let message = |text: &str| match toml::from_str::<WatchConfig>(text) {
            Ok(config) => config.check().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(message("images = 15"), "`watch.images` must be at least 16, got: 15");
        assert_eq!(message("holdout = 1.0"), "`watch.holdout` must be between 0 and 1, got: 1");
        assert_eq!(message("holdout = nan"), "`watch.holdout` must be between 0 and 1, got: NaN");
        assert!(message("evry = 3").contains("unknown field `evry`"));
        assert_eq!(toml::from_str::<WatchConfig>("").unwrap(), WatchConfig::default());
        assert!(WatchConfig::default().check().is_ok());
    }
}
