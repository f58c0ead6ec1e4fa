//! Depthwise convolution of elementary operations, tap by tap.

use candle_core::{Result, Tensor};

use crate::Windows;

pub(super) fn depthwise(rows: &Tensor, weight: &Tensor, windows: &Windows) -> Result<Tensor> {
    let (count, channels) = rows.dims2()?;
    let Windows { window, images, input, .. } = windows;
    let (kernel, padding) = (window.kernel, window.padding);
    let maps = rows
        .reshape((*images, input.height, input.width, channels))?
        .pad_with_zeros(1, padding, padding)?
        .pad_with_zeros(2, padding, padding)?;
    let of_tap = |tap: usize| -> Result<Tensor> {
        let shifted = maps.narrow(1, tap / kernel, input.height)?.narrow(2, tap % kernel, input.width)?;
        shifted.broadcast_mul(&weight.get(tap)?)
    };
    let mut sum = of_tap(0)?;
    for tap in 1..windows.taps() {
        sum = (sum + of_tap(tap)?)?;
    }
    sum.reshape((count, channels))
}
