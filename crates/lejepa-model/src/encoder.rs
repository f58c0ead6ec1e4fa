//! One type for every family of encoders.

use candle_core::Tensor;
use lejepa_kernels::profile::part;

use crate::{ConvNext, EncoderConfig, EncoderShape, Pass, ResNet, Result, Scope, VisionTransformer};

/// An encoder of any family: pixels to one feature vector per image.
#[derive(Debug, Clone)]
pub enum Encoder {
    /// A vision transformer.
    Vit(VisionTransformer),
    /// A residual network.
    ResNet(ResNet),
    /// A ConvNeXt V2.
    ConvNext(ConvNext),
}

impl Encoder {
    /// Builds what the configuration names.
    pub fn new(config: &EncoderConfig, scope: Scope<'_>) -> Result<Self> {
        Self::with_shape(&config.resolve()?, scope)
    }

    /// Builds an encoder of these sizes.
    pub fn with_shape(shape: &EncoderShape, scope: Scope<'_>) -> Result<Self> {
        Ok(match shape {
            EncoderShape::Vit(shape) => Self::Vit(VisionTransformer::new(shape, scope)?),
            EncoderShape::ResNet(shape) => Self::ResNet(ResNet::new(shape, scope)?),
            EncoderShape::ConvNext(shape) => Self::ConvNext(ConvNext::new(shape, scope)?),
        })
    }

    /// Its sizes.
    pub fn shape(&self) -> EncoderShape {
        match self {
            Self::Vit(vit) => EncoderShape::Vit(vit.shape().clone()),
            Self::ResNet(resnet) => EncoderShape::ResNet(resnet.shape().clone()),
            Self::ConvNext(convnext) => EncoderShape::ConvNext(convnext.shape().clone()),
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
        part("rest of the encoder", pixels, |pixels| match self {
            Self::Vit(vit) => vit.forward(pixels, pass),
            Self::ResNet(resnet) => resnet.forward(pixels, pass),
            Self::ConvNext(convnext) => convnext.forward(pixels, pass),
        })
    }
}
