//! The vision transformer (pre-norm) with timm's parameter names and numerics.
//!
//! ```text
//! tokens = [cls, registers, patches] + pos_embed   (images, prefix + rows * columns, dim)
//! tokens = block(tokens)                           for every block
//! feature = norm(tokens[cls])                      (images, dim), or
//! feature = fc_norm(mean(tokens[patches]))
//! ```

use candle_core::Tensor;
use lejepa_kernels::profile::{BLOCKS, part};
use lejepa_kernels::{Outputs, halves, place_tokens};

use super::block::{Block, Tokens};
use super::{Pool, VitShape, masking};
use crate::layers::{LayerNorm, PatchEmbed, resample_position_embedding};
use crate::{Error, Initialisation, Network, Pass, Result, Scope};

/// A vision transformer.
#[derive(Debug, Clone)]
pub struct VisionTransformer {
    shape: VitShape,
    patch_embed: PatchEmbed,
    /// Class token and registers, each `(1, n, dim)`.
    prefix: Vec<Tensor>,
    pos_embed: Tensor,
    blocks: Vec<Block>,
    /// timm's `norm` on tokens, or `fc_norm` on their mean.
    norm: LayerNorm,
}

/// What a vision transformer makes of a batch of images.
#[derive(Debug, Clone)]
pub struct VitTokens {
    /// All tokens, class and registers first, after the final norm (with average pooling there is none
    /// on tokens): `(images, tokens, dim)`.
    pub tokens: Tensor,
    /// Attention probabilities of the last block: `(images, heads, tokens, tokens)`.
    pub last_attention: Tensor,
}

impl VisionTransformer {
    /// Builds the transformer with timm's initialisation.
    pub fn new(shape: &VitShape, mut scope: Scope<'_>) -> Result<Self> {
        shape.check_sizes()?;
        let dim = shape.dim;
        let patch_embed = PatchEmbed::new(shape.channels, shape.patch_size, dim, scope.enter("patch_embed"))?;
        let mut prefix = Vec::new();
        for (name, count) in [("cls_token", usize::from(shape.class_token)), ("reg_token", shape.registers)] {
            if count > 0 {
                prefix.push(scope.parameter(name, (1, count, dim), Initialisation::Normal(1e-6))?);
            }
        }
        let position = Initialisation::TruncatedNormal(0.02);
        let pos_embed = scope.parameter("pos_embed", (1, shape.positions(), dim), position)?;
        let blocks = (0..shape.depth)
            .map(|index| Block::new(shape, index, scope.enter(format!("blocks.{index}"))))
            .collect::<Result<_>>()?;
        let norm = match shape.pool {
            Pool::Class => "norm",
            Pool::Average => "fc_norm",
        };
        let norm = LayerNorm::new(dim, scope.enter(norm))?;
        Ok(Self { shape: shape.clone(), patch_embed, prefix, pos_embed, blocks, norm })
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
        let mut tokens = self.embed(pixels)?;
        let (last, earlier) = self.last_block()?;
        for block in earlier {
            tokens = block.forward(tokens, Outputs::All, &Pass::eval())?;
        }
        let (tokens, last_attention) = last.forward_with_attention(tokens)?;
        let rows = match self.shape.pool {
            Pool::Class => self.norm.forward(&tokens.rows)?,
            Pool::Average => tokens.rows,
        };
        Ok(VitTokens { tokens: rows.reshape((tokens.images, tokens.count, self.shape.dim))?, last_attention })
    }

    /// The feature of every image.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    /// - result: `(images, dim)`
    pub fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor> {
        let tokens = masking::mask_patches(self.embed(pixels)?, self.shape.prefix(), pass)?;
        pass.see("patch_embed", &tokens.rows)?;
        let tokens = self.forward_blocks(tokens, pass)?;
        let Tokens { rows, images, count } = tokens;
        let rows = rows.reshape((images, count, self.shape.dim))?;
        let pooled = match self.shape.pool {
            Pool::Class => rows.narrow(1, 0, 1)?.squeeze(1)?,
            Pool::Average => {
                let prefix = self.shape.prefix();
                rows.narrow(1, prefix, count - prefix)?.mean(1)?
            }
        };
        self.norm.forward(&pooled)
    }

    /// All blocks, as one operation where there is one.
    fn forward_blocks(&self, mut tokens: Tokens, pass: &Pass) -> Result<Tokens> {
        // Nobody looks at other tokens of the last block than the one that is pooled.
        let last = if self.shape.pool == Pool::Class { Outputs::First } else { Outputs::All };
        let outputs = |index| if index + 1 == self.blocks.len() { last } else { Outputs::All };
        let blocks = self.blocks.iter().enumerate();
        if !pass.is_checked() {
            let all = blocks.clone().map(|(index, block)| block.halves(&tokens, outputs(index), pass));
            if let Some(all) = all.collect::<Option<Vec<_>>>() {
                let all = all.into_iter().flatten().collect();
                let rows = part(BLOCKS, &tokens.rows, |rows| halves(rows, all))?;
                return Ok(tokens.with_outputs(rows, last));
            }
        }
        for (index, block) in blocks {
            tokens = block.forward(tokens, outputs(index), pass)?;
            pass.see(format_args!("blocks.{index}"), &tokens.rows)?;
        }
        Ok(tokens)
    }

    /// Class token, registers and patches with their positions, one row per token.
    fn embed(&self, pixels: &Tensor) -> Result<Tokens> {
        let images = pixels.dim(0)?;
        let (patches, grid) = self.patch_embed.forward(pixels)?; // (images * patches, dim)
        let (prefix, patch_count) = (self.shape.prefix(), grid.height * grid.width);
        let positions = resample_position_embedding(&self.pos_embed, self.shape.grid(), grid)?;
        let shared = self.with_prefix(&positions.squeeze(0)?, patch_count)?.to_dtype(patches.dtype())?;
        Ok(Tokens { rows: place_tokens(&patches, &shared, prefix)?, images, count: prefix + patch_count })
    }

    /// What all images have in common: the tokens before the patches, and positions.
    ///
    /// # Shapes
    /// - `positions`: `(prefix + patches, dim)`, or without the prefix
    /// - result: `(prefix + patches, dim)`
    fn with_prefix(&self, positions: &Tensor, patches: usize) -> Result<Tensor> {
        let mut parts = Vec::with_capacity(self.prefix.len() + 1);
        for tokens in &self.prefix {
            parts.push(tokens.squeeze(0)?);
        }
        if !self.shape.embed_prefix {
            parts.push(positions.clone());
            return Ok(Tensor::cat(&parts, 0)?);
        }
        parts.push(Tensor::zeros((patches, self.shape.dim), positions.dtype(), positions.device())?);
        Ok((Tensor::cat(&parts, 0)? + positions)?)
    }

    fn last_block(&self) -> Result<(&Block, &[Block])> {
        // `VitShape::check_sizes` asks for at least one block.
        self.blocks.split_last().ok_or_else(|| Error::Setting {
            field: "encoder.depth",
            expected: "at least 1".into(),
            got: "0".into(),
        })
    }
}

impl Network for VisionTransformer {
    fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor> {
        self.forward(pixels, pass)
    }

    fn patch_tokens(&self, pixels: &Tensor) -> Result<Tensor> {
        let (images, _channels, height, width) = pixels.dims4()?;
        let (rows, columns) = (height / self.shape.patch_size, width / self.shape.patch_size);
        let tokens = self.forward_tokens(pixels)?.tokens;
        let patches = tokens.narrow(1, self.shape.prefix(), rows * columns)?;
        Ok(patches.reshape((images, rows, columns, self.shape.dim))?)
    }
}
