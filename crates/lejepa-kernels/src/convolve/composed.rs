//! Convolution of elementary operations: the windows as rows, times the kernel.

use candle_core::{Result, Tensor};

use crate::{Windows, unfold};

pub(super) fn convolve(rows: &Tensor, weight: &Tensor, windows: &Windows) -> Result<Tensor> {
    // Unfolded rows have the channels of a tap together, the weight has the taps of a channel.
    let (outputs, channels, taps) = weight.dims3()?;
    let weight = weight.transpose(1, 2)?.reshape((outputs, taps * channels))?;
    unfold(rows, windows, 1)?.squeeze(0)?.matmul(&weight.t()?)
}
