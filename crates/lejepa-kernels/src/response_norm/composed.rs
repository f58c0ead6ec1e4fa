//! Global response normalisation of elementary operations.

use candle_core::{Result, Tensor};

use super::EPSILON;

/// Below every response that matters; keeps the root's slope finite where a channel is zero everywhere.
const TINY: f64 = 1e-30;

pub(super) fn response_norm(rows: &Tensor, weight: &Tensor, bias: &Tensor, images: usize) -> Result<Tensor> {
    let (count, channels) = rows.dims2()?;
    let maps = rows.reshape((images, count / images.max(1), channels))?;
    let response = (maps.sqr()?.sum_keepdim(1)? + TINY)?.sqrt()?; // (images, 1, channels)
    let relative = response.broadcast_div(&(response.mean_keepdim(2)? + EPSILON)?)?;
    let factor = (relative.broadcast_mul(weight)? + 1.)?;
    maps.broadcast_mul(&factor)?.broadcast_add(bias)?.reshape((count, channels))
}
