//! The sizes of an encoder of any family.

use serde::{Deserialize, Serialize};

use crate::{ConvNextShape, Error, ImageSize, Pool, ResNetShape, Result, VitShape};

/// What a configuration stands for: a family and all of its sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "lowercase")]
pub enum EncoderShape {
    /// A vision transformer.
    Vit(VitShape),
    /// A residual network.
    ResNet(ResNetShape),
    /// A ConvNeXt V2.
    ConvNext(ConvNextShape),
}

impl EncoderShape {
    /// Pixels of a global view.
    pub fn image_size(&self) -> ImageSize {
        match self {
            Self::Vit(shape) => shape.image_size,
            Self::ResNet(shape) => shape.image_size,
            Self::ConvNext(shape) => shape.image_size,
        }
    }

    /// Channels of an image.
    pub fn channels(&self) -> usize {
        match self {
            Self::Vit(shape) => shape.channels,
            Self::ResNet(shape) => shape.channels,
            Self::ConvNext(shape) => shape.channels,
        }
    }

    /// Length of a feature vector.
    pub fn dim(&self) -> usize {
        match self {
            Self::Vit(shape) => shape.dim,
            Self::ResNet(shape) => shape.dim(),
            Self::ConvNext(shape) => shape.dim(),
        }
    }

    /// Whether the feature is a class token; otherwise it is a mean over places.
    pub fn has_class_feature(&self) -> bool {
        matches!(self, Self::Vit(VitShape { pool: Pool::Class, .. }))
    }

    /// Pixels between neighbouring places of the last feature map; image sizes are best a multiple of it.
    pub fn stride(&self) -> usize {
        match self {
            Self::Vit(shape) => shape.patch_size,
            Self::ResNet(_) | Self::ConvNext(_) => CONVOLUTIONAL_STRIDE,
        }
    }

    /// Refuses images that the encoder cannot take.
    pub fn check_image_size(&self, field: &'static str, size: ImageSize) -> Result<()> {
        let ImageSize { height, width } = size;
        let refuse = |expected: String| Err(Error::Setting { field, expected, got: size.to_string() });
        if height == 0 || width == 0 || height > LARGEST_SIDE || width > LARGEST_SIDE {
            return refuse(format!("between 1 and {LARGEST_SIDE} pixels"));
        }
        match self {
            Self::Vit(shape) if height % shape.patch_size != 0 || width % shape.patch_size != 0 => {
                refuse(format!("a multiple of the patch size {}", shape.patch_size))
            }
            Self::ConvNext(_) if height.min(width) < CONVOLUTIONAL_STRIDE => {
                refuse(format!("at least {CONVOLUTIONAL_STRIDE} pixels"))
            }
            _ => Ok(()),
        }
    }
}

/// What the stages of every convolutional encoder have.
pub(crate) struct Stages<'a> {
    pub(crate) channels: usize,
    pub(crate) depths: &'a [usize; 4],
    pub(crate) widths: &'a [usize; 4],
    pub(crate) drop_path: f64,
}

impl Stages<'_> {
    pub(crate) const LARGEST_WIDTH: usize = 16384;

    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |field, expected: &str, got: String| {
            Err(Error::Setting { field, expected: expected.into(), got })
        };
        if self.channels != 1 && self.channels != 3 {
            return refuse("encoder.channels", "1 (grey) or 3 (colour)", self.channels.to_string());
        }
        if !self.depths.iter().all(|depth| (1..=1024).contains(depth)) {
            return refuse("encoder.depths", "between 1 and 1024 each", format!("{:?}", self.depths));
        }
        if !self.widths.iter().all(|width| (1..=Self::LARGEST_WIDTH).contains(width)) {
            return refuse("encoder.widths", "between 1 and 16384 each", format!("{:?}", self.widths));
        }
        if !(0. ..1.).contains(&self.drop_path) {
            return refuse("encoder.drop_path", "at least 0 and below 1", self.drop_path.to_string());
        }
        Ok(())
    }
}

/// Five halvings.
const CONVOLUTIONAL_STRIDE: usize = 32;
/// Larger images are a mistake in a recipe.
const LARGEST_SIDE: usize = 4096;
