//! How many pictures a report gets.

use serde::{Deserialize, Serialize};

/// The table `[pictures]` of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pictures {
    /// Test images that are drawn as encoders see them, of as many classes as possible.
    pub images: usize,
    /// Test images on the maps.
    pub points: usize,
}

/// A page with more becomes slow, and a map unreadable.
const MOST_POINTS: usize = 2000;
const MOST_IMAGES: usize = 100;

impl Default for Pictures {
    fn default() -> Self {
        Self { images: 6, points: 300 }
    }
}

impl Pictures {
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        if self.points == 0 || self.points > MOST_POINTS {
            return Err(format!("`points` must be between 1 and {MOST_POINTS}, got: {}", self.points));
        }
        if self.images > MOST_IMAGES {
            return Err(format!("`images` must be at most {MOST_IMAGES}, got: {}", self.images));
        }
        Ok(())
    }
}
