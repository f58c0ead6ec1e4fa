//! Which encoder to build: a timm name, or a family with sizes of one's own.

mod convolutional;
mod fields;
mod names;
mod vit;

use serde::{Deserialize, Serialize};

use crate::{EncoderShape, Error, ImageSize, Pool, ResNetBlock, Result};

/// The `[encoder]` table of a recipe, as it was written.
///
/// A name fixes the sizes of its architecture; those that it does not fix, and all of them with `vit`,
/// `resnet` or `convnextv2`, can be given. A field that an architecture does not have is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EncoderConfig {
    /// A timm name such as `vit_tiny_patch16_224`, or `vit`, `resnet` or `convnextv2` with the sizes below.
    pub arch: String,
    /// Pixels of a global view; the name's own size if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_size: Option<ImageSize>,
    /// 1 for grey images, 3 for colour.
    pub channels: usize,
    /// Side of a patch in pixels; only with `vit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_size: Option<usize>,
    /// Width of a token; only with `vit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// Number of blocks; only with `vit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
    /// Attention heads; only with `vit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<usize>,
    /// Width of the perceptrons' hidden layer; only with `vit`, 4 times `dim` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mlp_hidden: Option<usize>,
    /// Register tokens of a vision transformer; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<usize>,
    /// First value of the LayerScale of a vision transformer; no LayerScale if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_scale: Option<f64>,
    /// What becomes the feature of a vision transformer: `class` (the default) or `average`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<Pool>,
    /// Whether a vision transformer has a class token; it has one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_token: Option<bool>,
    /// Whether class and register tokens have a position; true if absent, but for names with `reg`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embed_prefix: Option<bool>,
    /// Probability that the last block is passed over in training; 0 if absent. Start with 0.1 for large
    /// vision transformers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_path: Option<f64>,
    /// Blocks per stage; only with `resnet` and `convnextv2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depths: Option<[usize; 4]>,
    /// Channels per stage; only with `resnet` and `convnextv2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widths: Option<[usize; 4]>,
    /// The kind of block; only with `resnet`, `basic` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<ResNetBlock>,
    /// Groups of a bottleneck's 3x3 convolution; only with `resnet`, 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<usize>,
    /// Channels of a group in a stage of 64 channels; only with `resnet`, 64 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_width: Option<usize>,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self::named("vit_tiny_patch16_224")
    }
}

impl EncoderConfig {
    /// An architecture with everything that its name fixes and all else by default.
    pub fn named(arch: &str) -> Self {
        Self {
            arch: arch.into(),
            image_size: None,
            channels: 3,
            patch_size: None,
            dim: None,
            depth: None,
            heads: None,
            mlp_hidden: None,
            registers: None,
            layer_scale: None,
            pool: None,
            class_token: None,
            embed_prefix: None,
            drop_path: None,
            depths: None,
            widths: None,
            block: None,
            groups: None,
            group_width: None,
        }
    }

    /// The sizes that the table stands for, checked.
    pub fn resolve(&self) -> Result<EncoderShape> {
        let shape = match self.arch.as_str() {
            "vit" => EncoderShape::Vit(self.own_vit()?),
            "resnet" => EncoderShape::ResNet(self.own_resnet()?),
            "convnextv2" => EncoderShape::ConvNext(self.own_convnext()?),
            _ => self.named_shape()?,
        };
        match &shape {
            EncoderShape::Vit(shape) => shape.check()?,
            EncoderShape::ResNet(shape) => shape.check()?,
            EncoderShape::ConvNext(shape) => shape.check()?,
        }
        Ok(shape)
    }

    fn named_shape(&self) -> Result<EncoderShape> {
        let shape =
            [self.named_vit()?, self.named_resnet()?, self.named_convnext()?].into_iter().flatten().next();
        shape.ok_or_else(|| Error::Setting {
            field: "encoder.arch",
            expected: names::expected(&self.arch),
            got: format!("{:?}", self.arch),
        })
    }
}

#[cfg(test)]
mod tests;
