//! What a recipe can say of a vision transformer.

use serde::{Deserialize, Serialize};

use crate::{EncoderConfig, Error, Pool, Result, VitShape};

/// Keys that a name fixes.
pub(super) const SIZES: [&str; 5] = ["patch_size", "dim", "depth", "heads", "mlp_hidden"];

/// The keys of an `[encoder]` table that belong to vision transformers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VitSettings {
    /// Side of a patch in pixels; only with `vit`.
    pub patch_size: Option<usize>,
    /// Width of a token; only with `vit`.
    pub dim: Option<usize>,
    /// Number of blocks; only with `vit`.
    pub depth: Option<usize>,
    /// Attention heads; only with `vit`.
    pub heads: Option<usize>,
    /// Width of the perceptrons' hidden layer; only with `vit`, 4 times `dim` if absent.
    pub mlp_hidden: Option<usize>,
    /// Register tokens; none if absent.
    pub registers: Option<usize>,
    /// First value of the LayerScale; no LayerScale if absent.
    pub layer_scale: Option<f64>,
    /// What becomes the feature: `class` (the default) or `average`.
    pub pool: Option<Pool>,
    /// Whether there is a class token; there is one if absent.
    pub class_token: Option<bool>,
    /// Whether class and register tokens have a position; true if absent, but for names with `reg`.
    pub embed_prefix: Option<bool>,
    /// Probability that the last block is passed over in training; 0 if absent. Start with 0.1 for large encoders.
    pub drop_path: Option<f64>,
}

impl VitSettings {
    /// Sizes of one's own.
    pub(super) fn own(&self, config: &EncoderConfig) -> Result<VitShape> {
        let dim = config.required("encoder.dim", self.dim)?;
        let shape = VitShape {
            image_size: config.required("encoder.image_size", config.image_size)?,
            patch_size: config.required("encoder.patch_size", self.patch_size)?,
            dim,
            depth: config.required("encoder.depth", self.depth)?,
            heads: config.required("encoder.heads", self.heads)?,
            mlp_hidden: self.mlp_hidden.unwrap_or(dim.saturating_mul(4)),
            ..Default::default()
        };
        self.options(config, shape)
    }

    /// The same sizes with the options that are given.
    pub(super) fn options(&self, config: &EncoderConfig, shape: VitShape) -> Result<VitShape> {
        let shape = VitShape {
            channels: config.channels,
            registers: self.registers.unwrap_or(shape.registers),
            layer_scale: self.layer_scale.or(shape.layer_scale),
            pool: self.pool.unwrap_or(shape.pool),
            class_token: self.class_token.unwrap_or(shape.class_token),
            embed_prefix: self.embed_prefix.unwrap_or(shape.embed_prefix),
            drop_path: self.drop_path.unwrap_or(shape.drop_path),
            ..shape
        };
        match self.embed_prefix {
            Some(given) if shape.prefix() == 0 => Err(Error::Setting {
                field: "encoder.embed_prefix",
                expected: "absent without class token and registers".into(),
                got: given.to_string(),
            }),
            _ => Ok(shape),
        }
    }
}
