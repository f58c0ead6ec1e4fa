//! A linear layer of elementary operations.

use candle_core::{Result, Tensor};

use super::LinearActivation;

pub(super) fn linear(
    xs: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    activation: LinearActivation,
) -> Result<Tensor> {
    let ys = xs.matmul(&weight.t()?)?;
    let ys = match bias {
        Some(bias) => ys.broadcast_add(bias)?,
        None => ys,
    };
    match activation {
        LinearActivation::None => Ok(ys),
        LinearActivation::Gelu => ys.gelu_erf(),
    }
}
