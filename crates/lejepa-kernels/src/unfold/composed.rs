//! The windows of a feature map as rows, of elementary operations.

use candle_core::{Result, Tensor};

use crate::Windows;

pub(super) fn unfold(rows: &Tensor, windows: &Windows, groups: usize) -> Result<Tensor> {
    let gathered = windows.gather(rows, 0.)?;
    let (places, taps, channels) = gathered.dims3()?;
    gathered
        .reshape((places, taps, groups, channels / groups))?
        .permute((2, 0, 1, 3))? // (groups, places, taps, channels of a group)
        .reshape((groups, places, taps * channels / groups))
}
