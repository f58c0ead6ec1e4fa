//! The sizes of a residual network.

use serde::{Deserialize, Serialize};

use crate::ImageSize;

/// What a residual network is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResNetBlock {
    /// Two 3x3 convolutions.
    Basic,
    /// 1x1, 3x3 and 1x1, four times as wide at the end.
    Bottleneck,
}

/// The sizes of a residual network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResNetShape {
    /// Pixels of a global view.
    pub image_size: ImageSize,
    /// Channels of the image.
    pub channels: usize,
    /// The kind of block.
    pub block: ResNetBlock,
    /// Blocks per stage.
    pub depths: [usize; 4],
    /// Channels per stage, before a bottleneck's expansion; the stem has those of the first.
    pub widths: [usize; 4],
    /// Groups of a bottleneck's 3x3 convolution; above 1 it is a ResNeXt.
    pub groups: usize,
    /// Channels of a group in a stage of 64 channels (timm's `base_width`).
    pub group_width: usize,
    /// Probability that the last block is passed over in training; earlier ones less.
    pub drop_path: f64,
}

impl ResNetShape {
    /// Length of a feature vector.
    pub fn dim(&self) -> usize {
        let [.., last] = self.widths;
        match self.block {
            ResNetBlock::Basic => last,
            ResNetBlock::Bottleneck => 4 * last,
        }
    }

    /// The sizes behind a timm name such as `resnet18` or `resnext50_32x4d`.
    pub fn named(_name: &str) -> Option<Self> {
        None
    }
}
