//! The sizes of a ConvNeXt V2.

use serde::{Deserialize, Serialize};

use crate::family::Family;
use crate::family::stages::Stages;
use crate::{ImageSize, Result};

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
    /// Whether the perceptrons' weights have the shape of 1x1 convolutions, as in timm's smaller sizes.
    pub conv_mlp: bool,
    /// Probability that the last block is passed over in training; earlier ones less.
    pub drop_path: f64,
}

impl ConvNextShape {
    pub(super) fn check_sizes(&self) -> Result<()> {
        self.check_image_size("encoder.image_size", self.image_size)?;
        let Self { channels, depths, widths, drop_path, .. } = self;
        Stages { channels: *channels, depths, widths, drop_path: *drop_path }.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timm_name_gives_timms_sizes() {
        let shape = ConvNextShape::named("convnextv2_huge").unwrap();
        shape.check_sizes().unwrap();
        assert_eq!((shape.depths, shape.dim()), ([3, 3, 27, 3], 2816));
        assert_eq!(ConvNextShape::named("convnext_tiny"), None);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let atto = ConvNextShape::named("convnextv2_atto").unwrap();
        let message = |shape: ConvNextShape| shape.check_sizes().unwrap_err().to_string();
        let small = ImageSize { height: 31, width: 64 };
        assert!(message(ConvNextShape { image_size: small, ..atto.clone() }).contains("encoder.image_size"));
        assert!(message(ConvNextShape { channels: 4, ..atto.clone() }).contains("encoder.channels"));
        assert!(message(ConvNextShape { depths: [0; 4], ..atto.clone() }).contains("encoder.depths"));
        assert!(message(ConvNextShape { widths: [0; 4], ..atto.clone() }).contains("encoder.widths"));
        assert!(message(ConvNextShape { drop_path: -0.1, ..atto }).contains("encoder.drop_path"));
    }
}
