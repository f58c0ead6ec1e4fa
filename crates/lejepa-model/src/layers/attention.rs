//! Multi-head self-attention: `softmax(q k^T / sqrt(head_dim)) v`, heads side by side.

use candle_core::Tensor;
use lejepa_kernels::{Heads, attention};

use super::Linear;
use crate::{Result, Scope};

/// Self-attention with one product for queries, keys and values, as timm has it.
#[derive(Debug, Clone)]
pub struct Attention {
    heads: usize,
    qkv: Linear,
    proj: Linear,
}

impl Attention {
    /// `heads` must divide `dim`.
    pub fn new(dim: usize, heads: usize, mut scope: Scope<'_>) -> Result<Self> {
        let qkv = Linear::new(dim, 3 * dim, scope.enter("qkv"))?;
        let proj = Linear::new(dim, dim, scope.enter("proj"))?;
        Ok(Self { heads, qkv, proj })
    }

    /// # Shapes
    /// - `xs` and result: `(images * tokens, dim)`
    pub fn forward(&self, xs: &Tensor, tokens: usize) -> Result<Tensor> {
        Ok(self.forward_with_probabilities(xs, tokens)?.0)
    }

    /// The same with the attention probabilities, for those who want to see them.
    ///
    /// # Shapes
    /// - `xs`: `(images * tokens, dim)`
    /// - result: `(images * tokens, dim)` and `(images, heads, tokens, tokens)`
    pub fn forward_with_probabilities(&self, xs: &Tensor, tokens: usize) -> Result<(Tensor, Tensor)> {
        let heads = Heads { tokens, heads: self.heads };
        let (mixed, probabilities) = attention(&self.qkv.forward(xs)?, heads)?;
        Ok((self.proj.forward(&mixed)?, probabilities))
    }

    pub(crate) fn heads(&self) -> usize {
        self.heads
    }

    /// The layers before and after the heads.
    pub(crate) fn layers(&self) -> [&Linear; 2] {
        [&self.qkv, &self.proj]
    }
}
