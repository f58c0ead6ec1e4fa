//! The result of an evaluation: one documented structure, rendered by others.

use serde::{Deserialize, Serialize};

/// Everything an evaluation found. Written as `report.json`, rendered as `report.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this structure.
    pub format: u32,
    /// The suite's name or file.
    pub suite: String,
    /// The command line that made the report.
    pub command: String,
    /// What was evaluated on.
    pub data: DataInfo,
    /// Draws training images and what probes hold out.
    pub seed: u64,
    /// One entry per kind of features, in the order of the table.
    pub features: Vec<FeatureScores>,
}

impl Report {
    /// The version that this code writes.
    pub const FORMAT: u32 = 1;
}

/// The data of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataInfo {
    /// Where it lies.
    pub path: String,
    /// Fingerprints of training and test split.
    pub fingerprints: [String; 2],
    /// Training images used.
    pub train: usize,
    /// Training images there are.
    pub train_available: usize,
    /// Test images used.
    pub test: usize,
    /// Test images there are.
    pub test_available: usize,
    /// Number of classes.
    pub classes: usize,
}

/// The scores of one kind of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureScores {
    /// What the features are.
    pub name: String,
    /// Their length.
    pub dim: usize,
    /// Time to extract them, in seconds.
    pub seconds: f64,
    /// One score per probe; fewer while the evaluation runs.
    pub scores: Vec<Score>,
}

/// One number with what it stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// A column's title.
    pub title: String,
    /// The protocol, with what was chosen on held-out training data.
    pub protocol: String,
    /// Share of test images with the right class.
    pub accuracy: f64,
    /// Time to fit and score, in seconds.
    pub seconds: f64,
}
