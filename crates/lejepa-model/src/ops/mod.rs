//! Fused operations with a backward pass of their own, for f32 on the CPU.
//!
//! Each has a composed twin of elementary operations: the path of every other type and device, and
//! what the tests compare with. Candle's own fused operations have no backward pass.

mod contiguous;
mod gelu;
mod layer_norm;

pub(crate) use gelu::gelu;
pub(crate) use layer_norm::layer_norm;

/// Rows per task: enough work to be worth a thread.
const ROWS_PER_TASK: usize = 64;

/// Whether the fused forms apply.
fn is_fused(tensor: &candle_core::Tensor) -> bool {
    tensor.device().is_cpu() && tensor.dtype() == candle_core::DType::F32
}
