//! What a recipe can say of a residual network.

use serde::{Deserialize, Serialize};

use crate::{EncoderConfig, ResNetBlock, ResNetShape, Result};

/// Keys that a name fixes.
pub(super) const SIZES: [&str; 5] = ["depths", "widths", "block", "groups", "group_width"];

/// The keys of an `[encoder]` table that belong to residual networks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResNetSettings {
    /// Probability that the last block is passed over in training; 0 if absent.
    pub drop_path: Option<f64>,
    /// Blocks per stage; only with `resnet`.
    pub depths: Option<[usize; 4]>,
    /// Channels per stage; only with `resnet`.
    pub widths: Option<[usize; 4]>,
    /// The kind of block; only with `resnet`, `basic` if absent.
    pub block: Option<ResNetBlock>,
    /// Groups of a bottleneck's 3x3 convolution; only with `resnet`, 1 if absent.
    pub groups: Option<usize>,
    /// Channels of a group in a stage of 64 channels; only with `resnet`, 64 if absent.
    pub group_width: Option<usize>,
}

impl ResNetSettings {
    /// Sizes of one's own.
    pub(super) fn own(&self, config: &EncoderConfig) -> Result<ResNetShape> {
        Ok(ResNetShape {
            image_size: config.required("encoder.image_size", config.image_size)?,
            channels: config.channels,
            block: self.block.unwrap_or(ResNetBlock::Basic),
            depths: config.required("encoder.depths", self.depths)?,
            widths: config.required("encoder.widths", self.widths)?,
            groups: self.groups.unwrap_or(1),
            group_width: self.group_width.unwrap_or(64),
            drop_path: self.drop_path.unwrap_or(0.),
        })
    }
}
