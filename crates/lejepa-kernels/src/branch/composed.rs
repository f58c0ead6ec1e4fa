//! Branches of one operation per layer, in the type of the rows.

use candle_core::{Result, Tensor};

use super::{AttentionBranch, MlpBranch, Outputs, SpatialBranch};
use crate::{
    Heads, LinearActivation, add_bias, attention, depthwise, layer_norm, linear, response_norm, scale_images,
};

pub(super) fn attention_branch(rows: &Tensor, branch: &AttentionBranch<'_>) -> Result<Tensor> {
    let AttentionBranch { parameters, gamma, epsilon, images, heads, outputs } = branch;
    let [norm_weight, norm_bias, qkv, qkv_bias, proj, proj_bias] = &typed(*parameters, rows)?;
    let normed = layer_norm(rows, norm_weight, norm_bias, *epsilon)?;
    let qkv = linear(&normed, qkv, Some(qkv_bias), LinearActivation::None)?;
    let (mixed, _probabilities) = attention(&qkv, Heads { tokens: images.tokens, heads: *heads })?;
    let change = linear(&mixed, proj, Some(proj_bias), LinearActivation::None)?;
    let ys = (rows + scale_images(&times(change, *gamma)?, images.factors.clone())?)?;
    if *outputs == Outputs::All {
        return Ok(ys);
    }
    let (images, dim) = (images.factors.len(), rows.dim(1)?);
    ys.reshape((images, ys.dim(0)? / images.max(1), dim))?.narrow(1, 0, 1)?.reshape((images, dim))
}

pub(super) fn mlp_branch(rows: &Tensor, branch: &MlpBranch<'_>) -> Result<Tensor> {
    let MlpBranch { parameters, gamma, epsilon, images } = branch;
    let [norm_weight, norm_bias, fc1, fc1_bias, fc2, fc2_bias] = &typed(*parameters, rows)?;
    let normed = layer_norm(rows, norm_weight, norm_bias, *epsilon)?;
    let hidden = linear(&normed, fc1, Some(fc1_bias), LinearActivation::Gelu)?;
    let change = linear(&hidden, fc2, Some(fc2_bias), LinearActivation::None)?;
    rows + scale_images(&times(change, *gamma)?, images.factors.clone())?
}

pub(super) fn spatial_branch(rows: &Tensor, branch: &SpatialBranch<'_>) -> Result<Tensor> {
    let SpatialBranch { parameters, windows, epsilon, factors } = branch;
    let [kernel, kernel_bias, norm_weight, norm_bias, fc1, fc1_bias, weight, bias, fc2, fc2_bias] =
        &typed(*parameters, rows)?;
    // (dim, taps), (hidden, dim) and (dim, hidden), in whatever dimensions the parameters have
    let [kernel, fc1, fc2] = [kernel.flatten_from(1)?, fc1.flatten_from(1)?, fc2.flatten_from(1)?];
    let spatial = add_bias(&depthwise(rows, &kernel.t()?, windows)?, kernel_bias)?;
    let normed = layer_norm(&spatial, norm_weight, norm_bias, *epsilon)?;
    let hidden = linear(&normed, &fc1, Some(fc1_bias), LinearActivation::Gelu)?;
    let hidden = response_norm(&hidden, weight, bias, windows.images)?;
    let change = linear(&hidden, &fc2, Some(fc2_bias), LinearActivation::None)?;
    rows + scale_images(&change, factors.clone())?
}

/// The parameters in the type of the rows.
fn typed<const N: usize>(parameters: [&Tensor; N], rows: &Tensor) -> Result<[Tensor; N]> {
    let mut typed = parameters.map(Tensor::clone);
    for parameter in &mut typed {
        *parameter = parameter.to_dtype(rows.dtype())?;
    }
    Ok(typed)
}

fn times(change: Tensor, gamma: Option<&Tensor>) -> Result<Tensor> {
    match gamma {
        Some(gamma) => change.broadcast_mul(&gamma.to_dtype(change.dtype())?),
        None => Ok(change),
    }
}
