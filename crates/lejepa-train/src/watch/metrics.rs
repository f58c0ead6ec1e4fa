//! What one look has found.

use lejepa_loss::gauge::Reading;
use serde::{Deserialize, Serialize};

/// The numbers of one look: a line of `watch.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchMetrics {
    /// Steps that were taken before.
    pub step: u64,
    /// Tells the images and their split from others: numbers of other images do not compare. Absent in looks of
    /// versions whose images depended on the seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched: Option<String>,
    /// The encoder's features against an isotropic Gaussian of any mean and scale.
    pub features: GaugeMetrics,
    /// The projector's embeddings against the standard normal.
    pub embeddings: GaugeMetrics,
    /// Accuracy of nearest neighbours on held-out images, if there are labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knn: Option<f64>,
    /// Accuracy of ridge regression on held-out images, if there are labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear: Option<f64>,
}

/// What the gauge says, in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GaugeMetrics {
    /// SIGReg over the value of a perfect Gaussian: 1 is best.
    pub sigreg_over_floor: f64,
    /// The effective number of directions.
    pub rankme: f64,
    /// Directions that hold next to no variance.
    pub weak_directions: usize,
    /// The conclusion in a few words.
    pub verdict: String,
}

impl From<&Reading> for GaugeMetrics {
    fn from(reading: &Reading) -> Self {
        Self {
            sigreg_over_floor: reading.sigreg.ratio,
            rankme: reading.spectrum.rankme,
            weak_directions: reading.spectrum.weak,
            verdict: reading.verdict.title(),
        }
    }
}
