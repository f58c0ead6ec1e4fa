//! Fused operations with a backward pass of their own, for f32 on the CPU.
//!
//! Each has a composed twin of elementary operations: the path of every other type and device, and
//! what the tests compare with. Candle's own fused operations have no backward pass.

mod add_relu;
#[cfg(test)]
mod agreement;
mod attention;
mod batch_norm;
mod bias;
mod branch;
mod contiguous;
mod convolve;
mod depthwise;
mod filled;
mod gelu;
mod joint;
mod layer_norm;
mod linear;
mod max_pool;
mod patches;
mod place_tokens;
mod response_norm;
mod scale_images;
mod scratch;
mod standardise;
mod transpose;
mod unfold;
mod vectors;
mod wide;
mod window;

pub(crate) use add_relu::add_relu;
pub(crate) use attention::{Heads, attention};
pub(crate) use batch_norm::{Activation, batch_norm, convolve_and_norm, normalise};
pub(crate) use bias::add_bias;
pub(crate) use branch::{
    AttentionBranch, Half, Images, MlpBranch, Outputs, SpatialBranch, halves, spatial_branch,
};
pub(crate) use contiguous::values;
pub(crate) use convolve::convolve;
pub(crate) use depthwise::depthwise;
pub(crate) use layer_norm::layer_norm;
pub(crate) use linear::{LinearActivation, linear};
pub(crate) use max_pool::max_pool;
pub(crate) use patches::patches;
pub(crate) use place_tokens::place_tokens;
pub(crate) use response_norm::response_norm;
pub(crate) use scale_images::scale_images;
pub(crate) use transpose::transpose;
pub(crate) use unfold::unfold;
pub(crate) use window::{Window, Windows};

/// Rows per task: enough work to be worth a thread.
const ROWS_PER_TASK: usize = 64;

/// Whether the fused forms apply.
pub(crate) fn is_fused(tensor: &candle_core::Tensor) -> bool {
    tensor.device().is_cpu() && tensor.dtype() == candle_core::DType::F32
}

/// The sum of partial sums, in their order.
fn add_up(partial_sums: &[Vec<f32>], length: usize) -> Vec<f32> {
    let mut total = vec![0.; length];
    for sums in partial_sums {
        total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
    }
    total
}
