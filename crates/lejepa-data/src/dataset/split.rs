//! The parts of a dataset.

use serde::{Deserialize, Serialize};

/// Which part of a dataset. The numbers seed random draws: they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// What is learnt from.
    Train = 0,
    /// What is scored on.
    Test = 1,
    /// What settings are chosen on.
    Validation = 2,
    /// Images without labels, for pretraining.
    Unlabelled = 3,
}

impl Split {
    /// Every split, in the order in which people list them.
    pub const ALL: [Self; 4] = [Self::Train, Self::Validation, Self::Test, Self::Unlabelled];

    /// The split's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "training",
            Self::Test => "test",
            Self::Validation => "validation",
            Self::Unlabelled => "unlabelled",
        }
    }
}
