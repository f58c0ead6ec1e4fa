//! The sizes of a residual network.

use serde::{Deserialize, Serialize};

use crate::family::Family;
use crate::family::stages::Stages;
use crate::{Error, ImageSize, Result};

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
    /// Channels per stage, before a bottleneck's expansion.
    pub widths: [usize; 4],
    /// Groups of a bottleneck's 3x3 convolution; above 1 it is a ResNeXt.
    pub groups: usize,
    /// Channels of a group in a stage of 64 channels (timm's `base_width`).
    pub group_width: usize,
    /// Probability that the last block is passed over in training; earlier ones less.
    pub drop_path: f64,
}

impl ResNetShape {
    /// Channels of the stem, whatever the stages have.
    pub const STEM_WIDTH: usize = 64;
    /// Channels of a stage for which `group_width` is meant.
    const BASE_WIDTH: usize = 64;

    /// Channels that a block of a stage gives.
    pub fn outputs(&self, stage: usize) -> usize {
        let expansion = match self.block {
            ResNetBlock::Basic => 1,
            ResNetBlock::Bottleneck => 4,
        };
        expansion * self.widths[stage]
    }

    /// Channels of the 3x3 convolution in the middle of a stage's blocks.
    pub(super) fn inner_width(&self, stage: usize) -> usize {
        match self.block {
            ResNetBlock::Basic => self.widths[stage],
            ResNetBlock::Bottleneck => self.widths[stage] * self.group_width / Self::BASE_WIDTH * self.groups,
        }
    }

    pub(super) fn check_sizes(&self) -> Result<()> {
        self.check_image_size("encoder.image_size", self.image_size)?;
        let refuse = |field, expected: &str, got: String| {
            Err(Error::Setting { field, expected: expected.into(), got })
        };
        let Self { channels, depths, widths, drop_path, .. } = self;
        Stages { channels: *channels, depths, widths, drop_path: *drop_path }.check()?;
        let is_width = |width: &usize| (1..=Stages::LARGEST_WIDTH).contains(width);
        let (groups, group_width) = (self.groups, self.group_width);
        if self.block == ResNetBlock::Basic && groups != 1 {
            return refuse("encoder.groups", "1 in basic blocks", groups.to_string());
        }
        if self.block == ResNetBlock::Basic && group_width != Self::BASE_WIDTH {
            return refuse("encoder.group_width", "64 in basic blocks", group_width.to_string());
        }
        if !is_width(&groups) {
            return refuse("encoder.groups", "between 1 and 16384", groups.to_string());
        }
        if !is_width(&group_width) || !(0..4).all(|stage| is_width(&self.inner_width(stage))) {
            let expected = "such that the 3x3 convolutions have between 1 and 16384 channels";
            return refuse("encoder.group_width", expected, group_width.to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timm_name_gives_timms_sizes() {
        let shape = ResNetShape::named("resnext101_64x4d").unwrap();
        shape.check_sizes().unwrap();
        assert_eq!((shape.dim(), shape.inner_width(0), shape.inner_width(3)), (2048, 256, 2048));
        let shape = ResNetShape::named("resnet34").unwrap();
        assert_eq!((shape.dim(), shape.inner_width(3)), (512, 512));
        assert_eq!(ResNetShape::named("resnet9000"), None);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let basic = ResNetShape::named("resnet18").unwrap();
        let grouped = ResNetShape::named("resnext50_32x4d").unwrap();
        let message = |shape: ResNetShape| shape.check_sizes().unwrap_err().to_string();
        assert!(message(ResNetShape { channels: 2, ..basic.clone() }).contains("encoder.channels"));
        assert!(message(ResNetShape { depths: [1, 0, 1, 1], ..basic.clone() }).contains("encoder.depths"));
        assert!(message(ResNetShape { widths: [1, 0, 1, 1], ..basic.clone() }).contains("encoder.widths"));
        assert!(message(ResNetShape { groups: 2, ..basic.clone() }).contains("encoder.groups"));
        assert!(message(ResNetShape { group_width: 2, ..basic.clone() }).contains("encoder.group_width"));
        assert!(message(ResNetShape { drop_path: 1., ..basic.clone() }).contains("encoder.drop_path"));
        assert!(message(ResNetShape { drop_path: f64::NAN, ..basic }).contains("encoder.drop_path"));
        assert!(message(ResNetShape { groups: 0, ..grouped.clone() }).contains("encoder.groups"));
        assert!(message(ResNetShape { widths: [8, 8, 8, 8], ..grouped }).contains("encoder.group_width"));
    }
}
