//! The agreement between the crate that writes an encoder file and the crates that read it.

use serde::{Deserialize, Serialize};

use crate::Preprocess;

/// Name of the ONNX input: `(batch, channels, height, width)`, f32.
pub const PIXELS_INPUT: &str = "pixels";
/// Name of the ONNX output: `(batch, dim)`, f32.
pub const EMBEDDING_OUTPUT: &str = "embedding";
/// Key of the ONNX metadata entry that holds an [`EncoderCard`] as JSON.
pub const CARD_KEY: &str = "lejepa.card";
/// The version of [`EncoderCard`] that this code writes and reads.
pub const CARD_FORMAT: u32 = 1;

/// How an encoder makes one vector of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// The class token of the last block after the final norm.
    #[default]
    Cls,
    /// The mean over all places of the last map, or over all patch tokens.
    Avg,
}

impl Feature {
    /// The name in a protocol string.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Cls => "cls",
            Self::Avg => "avg",
        }
    }
}

/// What an exported encoder says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncoderCard {
    /// [`CARD_FORMAT`] when it was written.
    pub format: u32,
    /// The architecture's name.
    pub arch: String,
    /// What the embedding is; files from before this entry hold class tokens.
    #[serde(default)]
    pub feature: Feature,
    /// Length of an embedding.
    pub embedding_dim: usize,
    /// From an image to the input.
    pub preprocess: Preprocess,
    /// Training steps that made the weights; 0 for an untrained encoder.
    pub step: u64,
    /// Fingerprint of the training data.
    pub data_fingerprint: String,
    /// The whole training configuration.
    pub config: serde_json::Value,
}
