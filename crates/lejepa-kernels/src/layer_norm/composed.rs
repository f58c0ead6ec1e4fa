//! Layer normalisation of elementary operations.

use candle_core::{Result, Tensor};

pub(super) fn layer_norm(xs: &Tensor, weight: &Tensor, bias: &Tensor, epsilon: f32) -> Result<Tensor> {
    candle_nn::ops::layer_norm_slow(xs, weight, bias, epsilon)
}
