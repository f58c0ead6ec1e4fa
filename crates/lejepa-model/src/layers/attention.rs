//! Multi-head self-attention: `softmax(q k^T / sqrt(head_dim)) v`, heads side by side.

use candle_core::{D, Tensor};

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

    /// The attended tokens and the attention probabilities.
    ///
    /// # Shapes
    /// - `xs`: `(batch, tokens, dim)`
    /// - result: `(batch, tokens, dim)` and `(batch, heads, tokens, tokens)`
    pub fn forward(&self, xs: &Tensor) -> Result<(Tensor, Tensor)> {
        let (batch, tokens, dim) = xs.dims3()?;
        let head_dim = dim / self.heads;
        let qkv = self
            .qkv
            .forward(xs)?
            .reshape((batch, tokens, 3, self.heads, head_dim))?
            .permute((2, 0, 3, 1, 4))? // (3, batch, heads, tokens, head_dim)
            .contiguous()?;
        let (query, key, value) = (qkv.get(0)?, qkv.get(1)?, qkv.get(2)?);
        let query = (query * (head_dim as f64).powf(-0.5))?;
        let logits = query.matmul(&key.transpose(D::Minus2, D::Minus1)?)?; // (batch, heads, tokens, tokens)
        let probabilities = candle_nn::ops::softmax(&logits, D::Minus1)?;
        let mixed = probabilities
            .matmul(&value)?
            .transpose(1, 2)? // (batch, tokens, heads, head_dim)
            .reshape((batch, tokens, dim))?;
        Ok((self.proj.forward(&mixed)?, probabilities))
    }
}
