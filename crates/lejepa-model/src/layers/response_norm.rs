//! Global response normalisation of ConvNeXt V2: channels compete by their norm over an image.
//!
//! ```text
//! g = sqrt(sum over places of x^2),   n = g / (mean over channels of g + 1e-6)
//! y = x + weight * (x * n) + bias
//! ```

use candle_core::{DType, Tensor};
use lejepa_kernels::profile::part;
use lejepa_kernels::response_norm;

use crate::{Initialisation, Result, Scope};

/// Global response normalisation, timm's `GlobalResponseNorm`.
#[derive(Debug, Clone)]
pub struct ResponseNorm {
    weight: Tensor,
    bias: Tensor,
}

impl ResponseNorm {
    /// Starts as the identity.
    pub fn new(channels: usize, mut scope: Scope<'_>) -> Result<Self> {
        let weight = scope.parameter("weight", channels, Initialisation::Zeros)?;
        let bias = scope.parameter("bias", channels, Initialisation::Zeros)?;
        Ok(Self { weight, bias })
    }

    /// Weight and bias.
    pub(crate) fn parameters(&self) -> [&Tensor; 2] {
        [&self.weight, &self.bias]
    }

    /// # Shapes
    /// - `rows` and result: `(images * places, channels)`
    pub fn forward(&self, rows: &Tensor, images: usize) -> Result<Tensor> {
        // A sum of squares leaves the range of the half types, so it is taken in the parameters' type.
        let dtype: DType = self.weight.dtype();
        let ys = part("norms", &rows.to_dtype(dtype)?, |rows| {
            response_norm(rows, &self.weight, &self.bias, images)
        })?;
        Ok(ys.to_dtype(rows.dtype())?)
    }
}
