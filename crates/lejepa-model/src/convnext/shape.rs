//! The sizes of a ConvNeXt V2.

use serde::{Deserialize, Serialize};

use crate::ImageSize;

/// The sizes of a ConvNeXt V2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConvNextShape {
    /// Pixels of a global view.
    pub image_size: ImageSize,
    /// Channels of the image.
    pub channels: usize,
    /// Blocks per stage.
    pub depths: [usize; 4],
    /// Channels per stage.
    pub widths: [usize; 4],
    /// Probability that the last block is passed over in training; earlier ones less.
    pub drop_path: f64,
}

impl ConvNextShape {
    /// Length of a feature vector.
    pub fn dim(&self) -> usize {
        let [.., last] = self.widths;
        last
    }

    /// The sizes behind a timm name such as `convnextv2_atto`.
    pub fn named(_name: &str) -> Option<Self> {
        None
    }
}
