//! The sizes and options of a vision transformer.

use serde::{Deserialize, Serialize};

use crate::{Error, ImageSize, Result};

/// The sizes and options of a vision transformer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Width of the hidden layer of a block's perceptron.
    pub mlp_hidden: usize,
    /// What becomes the feature.
    pub pool: Pool,
    /// Whether a class token stands before the patches.
    pub class_token: bool,
    /// Register tokens between the class token and the patches.
    pub registers: usize,
    /// Whether class and register tokens have a position embedding (timm's `no_embed_class` is the opposite).
    pub embed_prefix: bool,
    /// First value of the scale behind each half of a block; no such scale if absent.
    pub layer_scale: Option<f64>,
    /// Probability that the last block is passed over in training; earlier ones less.
    pub drop_path: f64,
}

/// Which tokens become the feature of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pool {
    /// The class token.
    Class,
    /// The mean of all patches.
    Average,
}

impl Default for VitShape {
    /// timm's `vit_tiny_patch16_224`.
    fn default() -> Self {
        Self {
            image_size: 224.into(),
            patch_size: 16,
            channels: 3,
            dim: 192,
            depth: 12,
            heads: 3,
            mlp_hidden: 768,
            pool: Pool::Class,
            class_token: true,
            registers: 0,
            embed_prefix: true,
            layer_scale: None,
            drop_path: 0.,
        }
    }
}

impl VitShape {
    /// Patches per column and row.
    pub fn grid(&self) -> ImageSize {
        ImageSize {
            height: self.image_size.height / self.patch_size,
            width: self.image_size.width / self.patch_size,
        }
    }

    /// Tokens before the patches: class and registers.
    pub fn prefix(&self) -> usize {
        usize::from(self.class_token) + self.registers
    }

    /// Class token, registers and patches.
    pub fn tokens(&self) -> usize {
        self.prefix() + self.grid().height * self.grid().width
    }

    /// Rows of the position embedding.
    pub fn positions(&self) -> usize {
        if self.embed_prefix { self.tokens() } else { self.tokens() - self.prefix() }
    }

    pub(super) fn check_sizes(&self) -> Result<()> {
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
        let ranges = [
            ("encoder.dim", self.dim, 1, 16384),
            ("encoder.depth", self.depth, 1, 1024),
            ("encoder.mlp_hidden", self.mlp_hidden, 1, 65536),
            ("encoder.registers", self.registers, 0, 1024),
        ];
        for (field, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return refuse(field, format!("between {least} and {most}"), value.to_string());
            }
        }
        if self.heads == 0 || !self.dim.is_multiple_of(self.heads) {
            let expected = format!("a divisor of encoder.dim = {}", self.dim);
            return refuse("encoder.heads", expected, self.heads.to_string());
        }
        if self.pool == Pool::Class && !self.class_token {
            return refuse("encoder.pool", "\"average\" without a class token".into(), "\"class\"".into());
        }
        if let Some(first) = self.layer_scale.filter(|first| !first.is_finite() || *first == 0.) {
            return refuse("encoder.layer_scale", "a number other than zero".into(), first.to_string());
        }
        if !(0. ..1.).contains(&self.drop_path) {
            let expected = "at least 0 and below 1".into();
            return refuse("encoder.drop_path", expected, self.drop_path.to_string());
        }
        Ok(())
    }
}
