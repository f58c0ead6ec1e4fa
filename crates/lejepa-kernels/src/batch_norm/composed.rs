//! Batch normalisation of elementary operations.

use candle_core::{Result, Tensor};

use super::{Activation, Normalised};

pub(super) fn batch_norm(
    xs: &Tensor,
    affine: [&Tensor; 2],
    epsilon: f64,
    activation: Activation,
) -> Result<Normalised> {
    let mean = xs.mean(0)?;
    let variance = xs.broadcast_sub(&mean)?.sqr()?.mean(0)?;
    let ys = normalise(xs, [&mean, &variance], affine, epsilon)?;
    let ys = if activation == Activation::Relu { ys.relu()? } else { ys };
    Ok(Normalised { ys, mean: mean.detach(), variance: variance.detach() })
}

/// Rows normalised with given statistics: `(x - mean) / sqrt(variance + epsilon) * weight + bias`.
///
/// # Shapes
/// - `xs` and result: `(samples, dim)`; all others: `(dim)`
pub fn normalise(
    xs: &Tensor,
    [mean, variance]: [&Tensor; 2],
    [weight, bias]: [&Tensor; 2],
    epsilon: f64,
) -> Result<Tensor> {
    let scale = ((variance + epsilon)?.sqrt()?.recip()? * weight)?;
    xs.broadcast_sub(mean)?.broadcast_mul(&scale)?.broadcast_add(bias)
}
