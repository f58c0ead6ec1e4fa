//! Cuts an image into patches and maps each linearly to a token.
//!
//! The same as a convolution whose stride is its kernel, computed as one matrix product: a far
//! cheaper backward pass than a convolution's.

use candle_core::Tensor;
use lejepa_kernels::profile::part;
use lejepa_kernels::{LinearActivation, linear, patches};

use crate::{Error, ImageSize, Initialisation, Result, Scope};

/// Patches to tokens, with timm's convolution weight `(dim, channels, patch, patch)`.
#[derive(Debug, Clone)]
pub struct PatchEmbed {
    patch_size: usize,
    weight: Tensor,
    bias: Tensor,
}

impl PatchEmbed {
    /// Square patches of `patch_size` pixels.
    pub fn new(channels: usize, patch_size: usize, dim: usize, mut scope: Scope<'_>) -> Result<Self> {
        let fan_in = Initialisation::FanIn(channels * patch_size * patch_size);
        let mut scope = scope.enter("proj");
        let weight = scope.parameter("weight", (dim, channels, patch_size, patch_size), fan_in)?;
        let bias = scope.parameter("bias", dim, fan_in)?;
        Ok(Self { patch_size, weight, bias })
    }

    /// The tokens, row by row, and the grid they come from.
    ///
    /// # Shapes
    /// - `pixels`: `(batch, channels, height, width)`
    /// - result: `(batch * rows * columns, dim)`
    pub fn forward(&self, pixels: &Tensor) -> Result<(Tensor, ImageSize)> {
        let (_batch, _channels, height, width) = pixels.dims4()?;
        let patch = self.patch_size;
        if height % patch != 0 || width % patch != 0 || height == 0 || width == 0 {
            return Err(Error::Setting {
                field: "image_size",
                expected: format!("a multiple of the patch size {patch}"),
                got: format!("{height}x{width}"),
            });
        }
        let grid = ImageSize { height: height / patch, width: width / patch };
        let weight = self.weight.to_dtype(pixels.dtype())?.flatten_from(1)?; // (dim, channels * patch * patch)
        let bias = self.bias.to_dtype(pixels.dtype())?;
        let tokens = part("patch embedding", pixels, |pixels| {
            let patches = patches(pixels, patch)?; // (batch * rows * columns, channels * patch * patch)
            linear(&patches, &weight, Some(&bias), LinearActivation::None)
        })?;
        Ok((tokens, grid))
    }
}
