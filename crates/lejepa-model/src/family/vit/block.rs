//! One block of a vision transformer, for rows `(images * tokens, dim)`:
//!
//! ```text
//! rows = rows + drop_path1(ls1(attn(norm1(rows))))
//! rows = rows + drop_path2(ls2(mlp(norm2(rows))))
//! ```

use candle_core::Tensor;
use lejepa_kernels::{AttentionBranch, Half, Images, MlpBranch, Outputs, halves, is_fused};

use super::VitShape;
use crate::layers::{Attention, DropPath, LayerNorm, LayerScale, Linear, Mlp};
use crate::{Pass, Result, Scope};

/// Rows of tokens and how many there are.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    /// `(images * count, dim)`.
    pub(super) rows: Tensor,
    pub(super) images: usize,
    /// Tokens of an image.
    pub(super) count: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Block {
    norm1: LayerNorm,
    attn: Attention,
    norm2: LayerNorm,
    mlp: Mlp,
    attention_branch: Branch,
    mlp_branch: Branch,
}

/// What happens to one half of a block before it is added.
#[derive(Debug, Clone)]
struct Branch {
    layer_scale: Option<LayerScale>,
    drop_path: DropPath,
}

impl Block {
    /// The block number `index`; later ones are passed over more often.
    pub(super) fn new(shape: &VitShape, index: usize, mut scope: Scope<'_>) -> Result<Self> {
        let steps = shape.depth.saturating_sub(1).max(1);
        let probability = shape.drop_path * index as f64 / steps as f64;
        let mut branch = |half: usize| -> Result<Branch> {
            let name = format!("ls{half}");
            let layer_scale =
                shape.layer_scale.map(|first| LayerScale::new(shape.dim, first, scope.enter(name)));
            let drop_path = DropPath::new(probability, (2 * index + half) as u64);
            Ok(Branch { layer_scale: layer_scale.transpose()?, drop_path })
        };
        let (attention_branch, mlp_branch) = (branch(1)?, branch(2)?);
        Ok(Self {
            norm1: LayerNorm::new(shape.dim, scope.enter("norm1"))?,
            attn: Attention::new(shape.dim, shape.heads, scope.enter("attn"))?,
            norm2: LayerNorm::new(shape.dim, scope.enter("norm2"))?,
            mlp: Mlp::new(shape.dim, shape.mlp_hidden, scope.enter("mlp"))?,
            attention_branch,
            mlp_branch,
        })
    }

    /// Of all tokens, or of the first of every image alone.
    pub(super) fn forward(&self, tokens: Tokens, outputs: Outputs, pass: &Pass) -> Result<Tokens> {
        if let Some(both) = self.halves(&tokens, outputs, pass) {
            let rows = halves(&tokens.rows, both.into())?;
            return Ok(tokens.with_outputs(rows, outputs));
        }
        let attended = self.attn.forward(&self.norm1.forward(&tokens.rows)?, tokens.count)?;
        let tokens = self.attention_branch.add(tokens, attended, pass)?.only(outputs)?;
        self.forward_mlp(tokens, pass)
    }

    /// Both halves as parts of one operation, where there is one for these rows.
    pub(super) fn halves(&self, tokens: &Tokens, outputs: Outputs, pass: &Pass) -> Option<[Half<'_>; 2]> {
        if !is_fused(&tokens.rows) {
            return None;
        }
        let [attention, mlp] = [self.attn.layers(), self.mlp.layers()];
        let (attention_norm, mlp_norm) = (self.norm1.parameters(), self.norm2.parameters());
        let attention = AttentionBranch {
            parameters: parameters(attention_norm, attention)?,
            gamma: self.attention_branch.gamma(),
            epsilon: LayerNorm::EPSILON as f32,
            images: self.attention_branch.images(tokens.images, tokens.count, pass),
            heads: self.attn.heads(),
            outputs,
        };
        let mlp = MlpBranch {
            parameters: parameters(mlp_norm, mlp)?,
            gamma: self.mlp_branch.gamma(),
            epsilon: LayerNorm::EPSILON as f32,
            images: self.mlp_branch.images(tokens.images, tokens.kept(outputs), pass),
        };
        Some([Half::Attention(attention), Half::Mlp(mlp)])
    }

    /// The same in evaluation, with the attention probabilities `(images, heads, tokens, tokens)`.
    pub(super) fn forward_with_attention(&self, tokens: Tokens) -> Result<(Tokens, Tensor)> {
        let normed = self.norm1.forward(&tokens.rows)?;
        let (attended, probabilities) = self.attn.forward_with_probabilities(&normed, tokens.count)?;
        let pass = Pass::eval();
        Ok((self.forward_mlp(self.attention_branch.add(tokens, attended, &pass)?, &pass)?, probabilities))
    }

    fn forward_mlp(&self, tokens: Tokens, pass: &Pass) -> Result<Tokens> {
        let mixed = self.mlp.forward(&self.norm2.forward(&tokens.rows)?)?;
        self.mlp_branch.add(tokens, mixed, pass)
    }
}

/// Those of a norm and of the two layers behind it, which must have biases.
fn parameters<'a>(norm: [&'a Tensor; 2], layers: [&'a Linear; 2]) -> Option<[&'a Tensor; 6]> {
    let [(first, first_bias), (second, second_bias)] = layers.map(Linear::parameters);
    Some([norm[0], norm[1], first, first_bias?, second, second_bias?])
}

impl Tokens {
    /// Tokens of an image of which there are results.
    fn kept(&self, outputs: Outputs) -> usize {
        if outputs == Outputs::All { self.count } else { 1 }
    }

    /// The results of a block, or of several, in their place.
    pub(super) fn with_outputs(self, rows: Tensor, outputs: Outputs) -> Self {
        Self { rows, count: self.kept(outputs), ..self }
    }

    /// Leaves other tokens away.
    fn only(self, outputs: Outputs) -> Result<Self> {
        if outputs == Outputs::All {
            return Ok(self);
        }
        let dim = self.rows.dim(1)?;
        let rows = self.rows.reshape((self.images, self.count, dim))?;
        let rows = rows.narrow(1, 0, 1)?.reshape((self.images, dim))?;
        Ok(Self { rows, count: 1, ..self })
    }
}

impl Branch {
    fn gamma(&self) -> Option<&Tensor> {
        self.layer_scale.as_ref().map(LayerScale::gamma)
    }

    fn images(&self, images: usize, tokens: usize, pass: &Pass) -> Images {
        let factors = self.drop_path.factors(images, pass);
        Images { tokens, factors: factors.unwrap_or_else(|| vec![1.; images]) }
    }

    fn add(&self, tokens: Tokens, mut change: Tensor, pass: &Pass) -> Result<Tokens> {
        if let Some(layer_scale) = &self.layer_scale {
            change = layer_scale.forward(&change)?;
        }
        change = self.drop_path.forward(&change, tokens.images, pass)?;
        Ok(Tokens { rows: (tokens.rows + change)?, ..tokens })
    }
}
