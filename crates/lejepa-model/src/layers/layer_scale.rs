//! `y = x * gamma` over the last axis.

use candle_core::Tensor;

use crate::{Initialisation, Result, Scope};

/// A factor for every channel of a branch.
#[derive(Debug, Clone)]
pub struct LayerScale {
    gamma: Tensor,
}

impl LayerScale {
    /// Starts with the same factor everywhere.
    pub fn new(dim: usize, first: f64, mut scope: Scope<'_>) -> Result<Self> {
        Ok(Self { gamma: scope.parameter("gamma", dim, Initialisation::Constant(first))? })
    }

    /// # Shapes
    /// - `xs` and result: `(.., dim)`
    pub fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        Ok(xs.broadcast_mul(&self.gamma.to_dtype(xs.dtype())?)?)
    }

    pub(crate) fn gamma(&self) -> &Tensor {
        &self.gamma
    }
}
