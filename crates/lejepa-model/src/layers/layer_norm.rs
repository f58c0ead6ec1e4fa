//! `y = (x - mean) / sqrt(var + eps) * weight + bias` over the last axis.
//!
//! Composed of elementary operations: Candle's fused layer norm has no backward pass.

use candle_core::Tensor;

use crate::{Initialisation, Result, Scope};

/// Layer normalisation with timm's epsilon for vision transformers.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
}

impl LayerNorm {
    /// Added to the variance.
    pub const EPSILON: f64 = 1e-6;

    /// Starts as the identity on normalised input.
    pub fn new(dim: usize, mut scope: Scope<'_>) -> Result<Self> {
        let weight = scope.parameter("weight", dim, Initialisation::Ones)?;
        let bias = scope.parameter("bias", dim, Initialisation::Zeros)?;
        Ok(Self { weight, bias })
    }

    /// # Shapes
    /// - `xs` and result: `(.., dim)`
    pub fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        Ok(candle_nn::ops::layer_norm_slow(xs, &self.weight, &self.bias, Self::EPSILON as f32)?)
    }
}
