//! The vision transformer (pre-norm, class token) with timm's parameter names and numerics.
//!
//! ```text
//! tokens = [cls, patches] + pos_embed              (batch, 1 + rows * columns, dim)
//! tokens = tokens + attn(norm1(tokens))            for every block
//! tokens = tokens + mlp(norm2(tokens))
//! feature = norm(tokens)[cls]                      (batch, dim)
//! ```

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use crate::layers::{Attention, LayerNorm, Mlp, PatchEmbed, resample_position_embedding};
use crate::{Error, ImageSize, Initialisation, Pass, Result, Scope};

/// The sizes of a vision transformer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VitShape {
    /// Pixels for which the position embedding is kept.
    pub image_size: ImageSize,
    /// Side of a patch in pixels.
    pub patch_size: usize,
    /// Channels of the image.
    pub channels: usize,
    /// Width of a token.
    pub dim: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Attention heads.
    pub heads: usize,
}

impl VitShape {
    /// The hidden layer of a block's perceptron is this many times as wide as a token.
    const MLP_RATIO: usize = 4;

    /// Patches per column and row.
    pub fn grid(&self) -> ImageSize {
        ImageSize {
            height: self.image_size.height / self.patch_size,
            width: self.image_size.width / self.patch_size,
        }
    }

    /// Class token and patches.
    pub fn tokens(&self) -> usize {
        1 + self.grid().height * self.grid().width
    }

    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |field, expected: String, got: String| Err(Error::Setting { field, expected, got });
        let ImageSize { height, width } = self.image_size;
        if height == 0 || width == 0 || height > 4096 || width > 4096 {
            return refuse(
                "encoder.image_size",
                "between 1 and 4096 pixels".into(),
                self.image_size.to_string(),
            );
        }
        if self.patch_size == 0 || height % self.patch_size != 0 || width % self.patch_size != 0 {
            let expected = format!("a divisor of the image size {}", self.image_size);
            return refuse("encoder.patch_size", expected, self.patch_size.to_string());
        }
        if self.channels != 1 && self.channels != 3 {
            return refuse("encoder.channels", "1 (grey) or 3 (colour)".into(), self.channels.to_string());
        }
        if !(1..=16384).contains(&self.dim) {
            return refuse("encoder.dim", "between 1 and 16384".into(), self.dim.to_string());
        }
        if self.heads == 0 || !self.dim.is_multiple_of(self.heads) {
            let expected = format!("a divisor of encoder.dim = {}", self.dim);
            return refuse("encoder.heads", expected, self.heads.to_string());
        }
        if !(1..=1024).contains(&self.depth) {
            return refuse("encoder.depth", "between 1 and 1024".into(), self.depth.to_string());
        }
        Ok(())
    }
}

/// A vision transformer.
#[derive(Debug, Clone)]
pub struct VisionTransformer {
    shape: VitShape,
    patch_embed: PatchEmbed,
    cls_token: Tensor,
    pos_embed: Tensor,
    blocks: Vec<Block>,
    norm: LayerNorm,
}

/// What a vision transformer makes of a batch of images.
#[derive(Debug, Clone)]
pub struct VitTokens {
    /// All tokens after the final norm, the class token first: `(batch, tokens, dim)`.
    pub tokens: Tensor,
    /// Attention probabilities of the last block: `(batch, heads, tokens, tokens)`.
    pub last_attention: Tensor,
}

impl VisionTransformer {
    /// Builds the transformer with timm's initialisation.
    pub fn new(shape: &VitShape, mut scope: Scope<'_>) -> Result<Self> {
        shape.check()?;
        let dim = shape.dim;
        let patch_embed = PatchEmbed::new(shape.channels, shape.patch_size, dim, scope.enter("patch_embed"))?;
        let cls_token = scope.parameter("cls_token", (1, 1, dim), Initialisation::Normal(1e-6))?;
        let position = Initialisation::TruncatedNormal(0.02);
        let pos_embed = scope.parameter("pos_embed", (1, shape.tokens(), dim), position)?;
        let blocks = (0..shape.depth)
            .map(|index| Block::new(shape, scope.enter(format!("blocks.{index}"))))
            .collect::<Result<_>>()?;
        let norm = LayerNorm::new(dim, scope.enter("norm"))?;
        Ok(Self { shape: shape.clone(), patch_embed, cls_token, pos_embed, blocks, norm })
    }

    /// The sizes it was built with.
    pub fn shape(&self) -> &VitShape {
        &self.shape
    }

    /// All tokens and the last attention, for images of any size that is a multiple of the patch.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    pub fn forward_tokens(&self, pixels: &Tensor) -> Result<VitTokens> {
        let (mut rows, [images, tokens]) = self.embed(pixels)?;
        let (last, earlier) = self.last_block()?;
        for block in earlier {
            rows = block.forward(&rows, tokens)?;
        }
        let (rows, last_attention) = last.forward_with_attention(&rows, tokens)?;
        let tokens = self.norm.forward(&rows)?.reshape((images, tokens, self.shape.dim))?;
        Ok(VitTokens { tokens, last_attention })
    }

    /// The class token after the final norm.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    /// - result: `(images, dim)`
    pub fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (mut rows, [images, tokens]) = self.embed(pixels)?;
        pass.see("patch_embed", &rows)?;
        for (index, block) in self.blocks.iter().enumerate() {
            rows = block.forward(&rows, tokens)?;
            pass.see(format_args!("blocks.{index}"), &rows)?;
        }
        let class = rows.reshape((images, tokens, self.shape.dim))?.narrow(1, 0, 1)?.squeeze(1)?;
        self.norm.forward(&class)
    }

    /// Class token and patches with their positions, one row per token, and how many there are.
    ///
    /// # Shapes
    /// - result: `(images * tokens, dim)` and `[images, tokens]`
    fn embed(&self, pixels: &Tensor) -> Result<(Tensor, [usize; 2])> {
        let (patches, grid) = self.patch_embed.forward(pixels)?;
        let (images, patch_count, dim) = patches.dims3()?;
        let tokens = 1 + patch_count;
        let class = self.cls_token.broadcast_as((images, 1, dim))?;
        let positions = resample_position_embedding(&self.pos_embed, self.shape.grid(), grid)?;
        let embedded = Tensor::cat(&[&class, &patches], 1)?.broadcast_add(&positions)?;
        Ok((embedded.reshape((images * tokens, dim))?, [images, tokens]))
    }

    fn last_block(&self) -> Result<(&Block, &[Block])> {
        // `VitShape::check` asks for at least one block.
        self.blocks.split_last().ok_or_else(|| Error::Setting {
            field: "encoder.depth",
            expected: "at least 1".into(),
            got: "0".into(),
        })
    }
}

#[derive(Debug, Clone)]
struct Block {
    norm1: LayerNorm,
    attn: Attention,
    norm2: LayerNorm,
    mlp: Mlp,
}

impl Block {
    fn new(shape: &VitShape, mut scope: Scope<'_>) -> Result<Self> {
        Ok(Self {
            norm1: LayerNorm::new(shape.dim, scope.enter("norm1"))?,
            attn: Attention::new(shape.dim, shape.heads, scope.enter("attn"))?,
            norm2: LayerNorm::new(shape.dim, scope.enter("norm2"))?,
            mlp: Mlp::new(shape.dim, VitShape::MLP_RATIO * shape.dim, scope.enter("mlp"))?,
        })
    }

    fn forward(&self, rows: &Tensor, tokens: usize) -> Result<Tensor> {
        let attended = self.attn.forward(&self.norm1.forward(rows)?, tokens)?;
        self.forward_mlp(&(rows + attended)?)
    }

    fn forward_with_attention(&self, rows: &Tensor, tokens: usize) -> Result<(Tensor, Tensor)> {
        let normed = self.norm1.forward(rows)?;
        let (attended, probabilities) = self.attn.forward_with_probabilities(&normed, tokens)?;
        Ok((self.forward_mlp(&(rows + attended)?)?, probabilities))
    }

    fn forward_mlp(&self, rows: &Tensor) -> Result<Tensor> {
        Ok((rows + self.mlp.forward(&self.norm2.forward(rows)?)?)?)
    }
}
