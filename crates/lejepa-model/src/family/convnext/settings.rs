//! What a recipe can say of a ConvNeXt V2.

use serde::{Deserialize, Serialize};

use crate::{ConvNextShape, EncoderConfig, Result};

/// Keys that a name fixes.
pub(super) const SIZES: [&str; 2] = ["depths", "widths"];

/// The keys of an `[encoder]` table that belong to ConvNeXt V2.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConvNextSettings {
    /// Probability that the last block is passed over in training; 0 if absent.
    pub drop_path: Option<f64>,
    /// Blocks per stage; only with `convnextv2`.
    pub depths: Option<[usize; 4]>,
    /// Channels per stage; only with `convnextv2`.
    pub widths: Option<[usize; 4]>,
}

impl ConvNextSettings {
    /// Sizes of one's own.
    pub(super) fn own(&self, config: &EncoderConfig) -> Result<ConvNextShape> {
        Ok(ConvNextShape {
            image_size: config.required("encoder.image_size", config.image_size)?,
            channels: config.channels,
            depths: config.required("encoder.depths", self.depths)?,
            widths: config.required("encoder.widths", self.widths)?,
            conv_mlp: false,
            drop_path: self.drop_path.unwrap_or(0.),
        })
    }
}
