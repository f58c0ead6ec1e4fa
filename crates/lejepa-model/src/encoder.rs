//! One type for every family of encoders.

use std::sync::Arc;

use candle_core::Tensor;
use lejepa_kernels::profile::part;

use crate::{EncoderConfig, EncoderShape, Network, Pass, Result, Scope};

/// An encoder of any family: pixels to one feature vector per image.
#[derive(Debug, Clone)]
pub struct Encoder {
    shape: EncoderShape,
    network: Arc<dyn Network>,
}

impl Encoder {
    /// Builds what the configuration names.
    pub fn new(config: &EncoderConfig, scope: Scope<'_>) -> Result<Self> {
        Self::with_shape(&config.resolve()?, scope)
    }

    /// Builds an encoder of these sizes.
    pub fn with_shape(shape: &EncoderShape, scope: Scope<'_>) -> Result<Self> {
        Ok(Self { shape: shape.clone(), network: shape.build(scope)? })
    }

    /// Its sizes.
    pub fn shape(&self) -> EncoderShape {
        self.shape.clone()
    }

    /// Length of a feature vector.
    pub fn dim(&self) -> usize {
        self.shape.dim()
    }

    /// # Shapes
    /// - `pixels`: `(batch, channels, height, width)`
    /// - result: `(batch, dim)`
    pub fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor> {
        part("rest of the encoder", pixels, |pixels| self.network.forward(pixels, pass))
    }

    /// The features of every place, in evaluation.
    ///
    /// # Shapes
    /// - `pixels`: `(batch, channels, height, width)`
    /// - result: `(batch, rows, columns, dim)`
    pub fn patch_tokens(&self, pixels: &Tensor) -> Result<Tensor> {
        self.network.patch_tokens(pixels)
    }
}
