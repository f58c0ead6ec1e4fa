//! The agreement between the crate that writes an encoder file and the crates that read it.

use serde::{Deserialize, Serialize};

use crate::{Preprocess, SeenImages};

/// Name of the ONNX input: `(batch, channels, height, width)`, f32.
pub const PIXELS_INPUT: &str = "pixels";
/// Key of the ONNX metadata entry that holds an [`EncoderCard`] as JSON.
pub const CARD_KEY: &str = "lejepa.card";
/// Key of the ONNX metadata entry that holds a [`SelfTest`](crate::SelfTest) as JSON.
pub const SELF_TEST_KEY: &str = "lejepa.self_test";
/// Key of the ONNX metadata entry that holds the BLAKE3 hash, in hexadecimal digits, of all other fields of
/// the file as they stand in it.
pub const CHECKSUM_KEY: &str = "lejepa.blake3";
/// Key of the ONNX metadata entry that holds the BLAKE3 hash, in hexadecimal digits, of the file of weights beside
/// it, if there is one.
pub const WEIGHTS_KEY: &str = "lejepa.weights_blake3";
/// The version of [`EncoderCard`] that this code writes and reads.
pub const CARD_FORMAT: u32 = 2;

/// What an encoder file can compute of an image; all in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// The pooled feature: `(batch, dim)`.
    Embedding,
    /// The class tokens of the last two blocks after the final norm, side by side: `(batch, 2 dim)`.
    ClsLast2,
    /// The last feature of every place: `(batch, rows, columns, dim)`.
    PatchTokens,
    /// How much the class token looks at every patch, in the last block: `(batch, heads, rows, columns)`.
    ClsAttention,
    /// What the loss saw: `(batch, projector dim)`.
    Projection,
}

impl Output {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Embedding, Self::ClsLast2, Self::PatchTokens, Self::ClsAttention, Self::Projection];

    /// The name of the ONNX output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::ClsLast2 => "cls_last2",
            Self::PatchTokens => "patch_tokens",
            Self::ClsAttention => "cls_attention",
            Self::Projection => "projection",
        }
    }

    /// Whether it is one vector per image.
    pub fn is_vector(self) -> bool {
        matches!(self, Self::Embedding | Self::ClsLast2 | Self::Projection)
    }

    /// The output of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|output| output.name() == name)
    }
}

/// How an encoder makes one vector of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// The class token of the last block after the final norm.
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

/// How the numbers of an encoder file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// As they were trained.
    #[default]
    F32,
    /// Weights in 16 bits, arithmetic in f32: half the file.
    F16,
    /// Weights in 8 bits; matrix products in integers, convolutions in f32.
    Int8,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Int8];

    /// Bytes of a stored weight.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
            Self::Int8 => 1,
        }
    }

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Int8 => "int8",
        }
    }
}

/// Height and width of an input in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputSize {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// What an exported encoder says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncoderCard {
    /// [`CARD_FORMAT`] when it was written.
    pub format: u32,
    /// The architecture's name.
    pub arch: String,
    /// What the embedding is.
    pub feature: Feature,
    /// Length of an embedding.
    pub embedding_dim: usize,
    /// How its numbers are stored.
    pub precision: Precision,
    /// From an image to the input.
    pub preprocess: Preprocess,
    /// Sizes of input that the file takes; the first one is that of `preprocess`.
    pub sizes: Vec<InputSize>,
    /// Licence of the weights; empty if nothing was said.
    pub licence: String,
    /// Training steps that made the weights; 0 for an untrained encoder.
    pub step: u64,
    /// Fingerprint of the training data.
    pub data_fingerprint: String,
    /// Whether the file holds a checksum, without which it is damaged; files of earlier times have none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checksum: bool,
    /// The images that it was trained on, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenImages>,
    /// The whole training configuration.
    pub config: serde_json::Value,
}

impl EncoderCard {
    /// Refuses a card that cannot be right.
    pub fn check(&self) -> std::result::Result<(), String> {
        if self.format != CARD_FORMAT {
            return Err(format!("card format {} is not known, expected {CARD_FORMAT}", self.format));
        }
        self.preprocess.check().map_err(|error| error.to_string())?;
        if self.embedding_dim == 0 {
            return Err("embedding_dim is 0".into());
        }
        let first = InputSize { height: self.preprocess.crop_height, width: self.preprocess.crop_width };
        if self.sizes.first() != Some(&first) {
            return Err("the first of `sizes` is not the crop of `preprocess`".into());
        }
        let unusable = |size: &&InputSize| self.preprocess.for_size(size.height, size.width).check().is_err();
        match self.sizes.iter().find(unusable) {
            Some(size) => Err(format!("size {}x{} cannot be used", size.height, size.width)),
            None => Ok(()),
        }
    }
}
