//! A convolution that gives every channel a kernel of its own and keeps the map's size.

use candle_core::Tensor;
use lejepa_kernels::profile::part;
use lejepa_kernels::{Window, Windows, add_bias, depthwise, transpose};

use super::FeatureMap;
use crate::{Initialisation, Result, Scope};

/// A depthwise convolution with weight `(channels, 1, kernel, kernel)`.
#[derive(Debug, Clone)]
pub struct DepthwiseConvolution {
    kernel: usize,
    weight: Tensor,
    bias: Tensor,
}

impl DepthwiseConvolution {
    /// With an odd kernel, truncated normal weights and a zero bias, as timm has it for ConvNeXt.
    pub fn new(channels: usize, kernel: usize, mut scope: Scope<'_>) -> Result<Self> {
        let first = Initialisation::TruncatedNormal(0.02);
        let weight = scope.parameter("weight", (channels, 1, kernel, kernel), first)?;
        let bias = scope.parameter("bias", channels, Initialisation::Zeros)?;
        Ok(Self { kernel, weight, bias })
    }

    /// Weight and bias.
    pub(crate) fn parameters(&self) -> [&Tensor; 2] {
        [&self.weight, &self.bias]
    }

    pub(crate) fn windows(&self, map: &FeatureMap) -> Result<Windows> {
        let window = Window { kernel: self.kernel, stride: 1, padding: self.kernel / 2 };
        Ok(Windows::new(window, map.images, map.size.into())?)
    }

    /// # Shapes
    /// - rows of `map` and result: `(images * places, channels)`
    pub fn forward(&self, map: &FeatureMap) -> Result<FeatureMap> {
        let windows = self.windows(map)?;
        let (dtype, channels) = (map.rows.dtype(), self.bias.dim(0)?);
        let weight = self.weight.to_dtype(dtype)?.reshape((1, channels, self.kernel * self.kernel))?;
        let weight = transpose(&weight)?.squeeze(0)?; // (taps, channels)
        let bias = self.bias.to_dtype(dtype)?;
        let rows =
            part("depthwise", &map.rows, |rows| add_bias(&depthwise(rows, &weight, &windows)?, &bias))?;
        Ok(map.with_rows(rows))
    }
}
