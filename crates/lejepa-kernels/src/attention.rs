//! Multi-head attention of elementary operations, from queries, keys and values that lie side by side in
//! every row: `softmax(q k^T / sqrt(head_dim)) v`.

use candle_core::{D, Result, Tensor};

/// How rows are divided into images and heads.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    /// Rows per image.
    pub tokens: usize,
    /// Heads per row.
    pub heads: usize,
}

/// The mixed values and the probabilities.
///
/// # Shapes
/// - `qkv`: `(images * tokens, 3 * dim)`: queries, keys, values, each `(heads, head_dim)`
/// - result: `(images * tokens, dim)` and `(images, heads, tokens, tokens)`
pub fn attention(qkv: &Tensor, Heads { tokens, heads }: Heads) -> Result<(Tensor, Tensor)> {
    let (rows, width) = qkv.dims2()?;
    let (images, dim) = (rows / tokens, width / 3);
    let head_dim = dim / heads;
    let qkv = qkv
        .reshape((images, tokens, 3, heads, head_dim))?
        .permute((2, 0, 3, 1, 4))? // (3, images, heads, tokens, head_dim)
        .contiguous()?;
    let (query, key, value) = (qkv.get(0)?, qkv.get(1)?, qkv.get(2)?);
    let query = (query * (head_dim as f64).powf(-0.5))?;
    let logits = query.matmul(&key.transpose(D::Minus2, D::Minus1)?)?; // (images, heads, tokens, tokens)
    let probabilities = candle_nn::ops::softmax(&logits, D::Minus1)?;
    let mixed = probabilities
        .matmul(&value)?
        .transpose(1, 2)? // (images, tokens, heads, head_dim)
        .reshape((rows, dim))?;
    Ok((mixed, probabilities))
}
