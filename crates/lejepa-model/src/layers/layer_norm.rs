//! `y = (x - mean) / sqrt(var + eps) * weight + bias` over the last axis.

use candle_core::Tensor;
use lejepa_kernels::layer_norm;
use lejepa_kernels::profile::part;

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
        let (weight, bias) = (self.weight.to_dtype(xs.dtype())?, self.bias.to_dtype(xs.dtype())?);
        Ok(part("norms", xs, |xs| layer_norm(xs, &weight, &bias, Self::EPSILON as f32))?)
    }

    /// Weight and bias.
    pub(crate) fn parameters(&self) -> [&Tensor; 2] {
        [&self.weight, &self.bias]
    }
}
