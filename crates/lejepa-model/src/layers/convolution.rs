//! `y[place] = sum over taps of W[tap] x[stride * place + tap - padding] (+ b)`, zero beyond the edge.
//!
//! With groups the windows become rows, so that the sum is one matrix product per group.

use candle_core::Tensor;
use lejepa_kernels::profile::part;
use lejepa_kernels::{Window, Windows, add_bias, convolve, transpose, unfold};

use super::FeatureMap;
use crate::{Initialisation, Result, Scope};

/// The sizes of a convolution with a square kernel.
#[derive(Debug, Clone, Copy)]
pub struct ConvolutionShape {
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Side of the kernel.
    pub kernel: usize,
    /// Places between neighbouring windows.
    pub stride: usize,
    /// Zeros beyond every edge.
    pub padding: usize,
    /// Channels are cut into this many parts that do not meet.
    pub groups: usize,
}

/// A convolution with weight `(outputs, inputs / groups, kernel, kernel)`.
#[derive(Debug, Clone)]
pub struct Convolution {
    shape: ConvolutionShape,
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Convolution {
    /// Without bias, for use before a batch normalisation that would subtract it; Kaiming's
    /// initialisation by the number of outputs, as timm has it for residual networks.
    pub fn without_bias(shape: ConvolutionShape, mut scope: Scope<'_>) -> Result<Self> {
        let fan_out = (shape.outputs * shape.kernel * shape.kernel) as f64;
        let first = Initialisation::Normal((2. / fan_out).sqrt());
        Ok(Self { shape, weight: scope.parameter("weight", shape.weight(), first)?, bias: None })
    }

    /// With truncated normal weights and a zero bias, as timm has it for ConvNeXt.
    pub fn with_bias(shape: ConvolutionShape, mut scope: Scope<'_>) -> Result<Self> {
        let weight = scope.parameter("weight", shape.weight(), Initialisation::TruncatedNormal(0.02))?;
        let bias = Some(scope.parameter("bias", shape.outputs, Initialisation::Zeros)?);
        Ok(Self { shape, weight, bias })
    }

    /// # Shapes
    /// - `map.rows`: `(images * places, inputs)`
    /// - result's rows: `(images * output places, outputs)`
    pub fn forward(&self, map: &FeatureMap) -> Result<FeatureMap> {
        let ConvolutionShape { kernel, stride, padding, .. } = self.shape;
        let windows = Windows::new(Window { kernel, stride, padding }, map.images, map.size.into())?;
        let rows = part("convolutions", &map.rows, |rows| self.forward_rows(rows, &windows))?;
        Ok(FeatureMap { rows, images: map.images, size: windows.output.into() })
    }

    /// The kernel `(outputs, inputs, kernel, kernel)` and its windows, if that is all there is: no groups, no bias.
    pub(super) fn ungrouped(&self, map: &FeatureMap) -> Result<Option<(&Tensor, Windows)>> {
        let ConvolutionShape { kernel, stride, padding, groups, .. } = self.shape;
        if groups != 1 || self.bias.is_some() {
            return Ok(None);
        }
        let windows = Windows::new(Window { kernel, stride, padding }, map.images, map.size.into())?;
        Ok(Some((&self.weight, windows)))
    }

    fn forward_rows(&self, rows: &Tensor, windows: &Windows) -> Result<Tensor> {
        let ConvolutionShape { inputs, outputs, kernel, groups, .. } = self.shape;
        let weight = self.weight.to_dtype(rows.dtype())?;
        let taps = kernel * kernel;
        let weight = weight.reshape((outputs, inputs / groups, taps))?;
        let rows = if groups == 1 {
            convolve(rows, &weight, windows)?
        } else {
            // Unfolded rows have the channels of a tap together, the weight has the taps of a channel.
            let weight = transpose(&weight)?.reshape((groups, outputs / groups, taps * inputs / groups))?;
            let unfolded = unfold(rows, windows, groups)?; // (groups, places, taps * inputs / groups)
            let by_group = unfolded.matmul(&weight.t()?)?; // (groups, places, outputs / groups)
            let places = by_group.dim(1)?;
            by_group.transpose(0, 1)?.reshape((places, outputs))?
        };
        Ok(match &self.bias {
            Some(bias) => add_bias(&rows, &bias.to_dtype(rows.dtype())?)?,
            None => rows,
        })
    }
}

impl ConvolutionShape {
    /// A kernel of one place.
    pub fn pointwise(inputs: usize, outputs: usize) -> Self {
        Self { inputs, outputs, kernel: 1, stride: 1, padding: 0, groups: 1 }
    }

    /// 3x3 with a padding that keeps the size.
    pub fn three_by_three(inputs: usize, outputs: usize) -> Self {
        Self { kernel: 3, padding: 1, ..Self::pointwise(inputs, outputs) }
    }

    /// Windows that touch and do not overlap.
    pub fn patches(inputs: usize, outputs: usize, side: usize) -> Self {
        Self { kernel: side, stride: side, ..Self::pointwise(inputs, outputs) }
    }

    fn weight(&self) -> (usize, usize, usize, usize) {
        (self.outputs, self.inputs / self.groups, self.kernel, self.kernel)
    }
}
