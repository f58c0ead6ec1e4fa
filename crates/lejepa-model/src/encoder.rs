//! One type for every family of encoders.

use candle_core::Tensor;

use crate::{EncoderConfig, EncoderShape, Pass, Result, Scope, VisionTransformer};

/// An encoder of any family: pixels to one feature vector per image.
#[derive(Debug, Clone)]
pub enum Encoder {
    /// A vision transformer.
    Vit(VisionTransformer),
}

impl Encoder {
    /// Builds what the configuration names.
    pub fn new(config: &EncoderConfig, scope: Scope<'_>) -> Result<Self> {
        match config.resolve()? {
            EncoderShape::Vit(shape) => Ok(Self::Vit(VisionTransformer::new(&shape, scope)?)),
            EncoderShape::ResNet(_) | EncoderShape::ConvNext(_) => unimplemented!(),
        }
    }

    /// Its sizes.
    pub fn shape(&self) -> EncoderShape {
        match self {
            Self::Vit(vit) => EncoderShape::Vit(vit.shape().clone()),
        }
    }

    /// Length of a feature vector.
    pub fn dim(&self) -> usize {
        self.shape().dim()
    }

    /// # Shapes
    /// - `pixels`: `(batch, channels, height, width)`
    /// - result: `(batch, dim)`
    pub fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor> {
        match self {
            Self::Vit(vit) => vit.forward(pixels, pass),
        }
    }
}
