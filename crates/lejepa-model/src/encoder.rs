//! One type for every family of encoders.

use candle_core::Tensor;

use crate::{EncoderConfig, Result, Scope, VisionTransformer};

/// An encoder of any family: pixels to one feature vector per image.
#[derive(Debug, Clone)]
pub enum Encoder {
    /// A vision transformer.
    Vit(VisionTransformer),
}

impl Encoder {
    /// Builds what the configuration names.
    pub fn new(config: &EncoderConfig, scope: Scope<'_>) -> Result<Self> {
        Ok(Self::Vit(VisionTransformer::new(&config.resolve()?, scope)?))
    }

    /// Length of a feature vector.
    pub fn dim(&self) -> usize {
        match self {
            Self::Vit(vit) => vit.shape().dim,
        }
    }

    /// # Shapes
    /// - `pixels`: `(batch, channels, height, width)`
    /// - result: `(batch, dim)`
    pub fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        match self {
            Self::Vit(vit) => vit.forward(pixels),
        }
    }
}
