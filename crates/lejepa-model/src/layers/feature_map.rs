//! Feature maps as rows, channels last: `(images * height * width, channels)`.
//!
//! A 1x1 convolution is then a linear layer, and norms over channels or samples need no transpose.

use candle_core::Tensor;
use lejepa_kernels::transpose;

use crate::{ImageSize, Result};

/// The feature maps of a batch of images.
#[derive(Debug, Clone)]
pub struct FeatureMap {
    /// One row per place, image by image and line by line: `(images * height * width, channels)`.
    pub rows: Tensor,
    /// How many images.
    pub images: usize,
    /// Height and width.
    pub size: ImageSize,
}

impl FeatureMap {
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    pub fn from_pixels(pixels: &Tensor) -> Result<Self> {
        let (images, channels, height, width) = pixels.dims4()?;
        let rows = transpose(&pixels.reshape((images, channels, height * width))?)?;
        let rows = rows.reshape((images * height * width, channels))?;
        Ok(Self { rows, images, size: ImageSize { height, width } })
    }

    /// The other layout, channels first.
    ///
    /// # Shapes
    /// - result: `(images, channels, height, width)`
    pub fn channels_first(&self) -> Result<Tensor> {
        let (images, ImageSize { height, width }) = (self.images, self.size);
        let channels = self.rows.dim(1)?;
        let maps = transpose(&self.rows.reshape((images, height * width, channels))?)?;
        Ok(maps.reshape((images, channels, height, width))?)
    }

    /// The rows by image and place.
    ///
    /// # Shapes
    /// - result: `(images, height, width, channels)`
    pub fn channels_last(&self) -> Result<Tensor> {
        Ok(self.rows.reshape((self.images, self.size.height, self.size.width, ()))?)
    }

    /// The same places with other values.
    pub fn with_rows(&self, rows: Tensor) -> Self {
        Self { rows, ..*self }
    }

    /// The mean over the places of every image.
    ///
    /// # Shapes
    /// - result: `(images, channels)`
    pub fn pool(&self) -> Result<Tensor> {
        let channels = self.rows.dim(1)?;
        let places = self.size.height * self.size.width;
        Ok(self.rows.reshape((self.images, places, channels))?.mean(1)?)
    }
}
