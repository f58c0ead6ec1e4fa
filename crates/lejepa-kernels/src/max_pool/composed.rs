//! The largest value of every window, of elementary operations.

use candle_core::{Result, Tensor};

use crate::Windows;

pub(super) fn max_pool(rows: &Tensor, windows: &Windows) -> Result<Tensor> {
    let gathered = windows.gather(rows, f64::NEG_INFINITY)?; // (places, taps, channels)
    let first = gathered.detach().argmax_keepdim(1)?.contiguous()?;
    gathered.gather(&first, 1)?.squeeze(1)
}
