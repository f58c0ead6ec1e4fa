//! `y = fc2(gelu(fc1(x)))`, with the exact (error function) GELU.

use candle_core::Tensor;

use super::Linear;
use crate::{Result, Scope};

/// The two-layer perceptron of a transformer block.
#[derive(Debug, Clone)]
pub struct Mlp {
    fc1: Linear,
    fc2: Linear,
}

impl Mlp {
    /// Widens `dim` to `hidden` and back.
    pub fn new(dim: usize, hidden: usize, mut scope: Scope<'_>) -> Result<Self> {
        let fc1 = Linear::new(dim, hidden, scope.enter("fc1"))?;
        let fc2 = Linear::new(hidden, dim, scope.enter("fc2"))?;
        Ok(Self { fc1, fc2 })
    }

    /// # Shapes
    /// - `xs` and result: `(rows, dim)`
    pub fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        self.fc2.forward(&self.fc1.forward_gelu(xs)?)
    }

    pub(crate) fn layers(&self) -> [&Linear; 2] {
        [&self.fc1, &self.fc2]
    }
}
