//! Fused operations with a backward pass of their own, for f32 on the CPU.
//!
//! Each has a composed twin of elementary operations: the path of every other type and device, and
//! what the tests compare with. Candle's own fused operations have no backward pass.

mod attention;
mod bias;
mod contiguous;
mod exponential;
mod gelu;
mod layer_norm;

pub(crate) use attention::{Heads, attention, composed as composed_attention};
pub(crate) use bias::add_bias;
pub(crate) use gelu::gelu;
pub(crate) use layer_norm::layer_norm;

/// Rows per task: enough work to be worth a thread.
const ROWS_PER_TASK: usize = 64;

/// Whether the fused forms apply.
fn is_fused(tensor: &candle_core::Tensor) -> bool {
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
