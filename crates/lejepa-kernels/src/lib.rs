//! Fused operations for Candle with a backward pass of their own, for f32 on the CPU, and what they are made of.
//!
//! Candle's own fused operations have no backward pass, and chains of its elementary ones read and write memory far
//! more often than a training step has to. Every operation here has a composed twin of elementary operations: the path
//! of every other type and device, and what the tests compare with. The public function of an operation chooses.
//!
//! Feature maps are rows, channels last: `(images * height * width, channels)`; so are tokens: `(images * tokens, dim)`.
//! No result depends on the number of threads.
//!
//! ```
//! use candle_core::{DType, Device, Tensor, Var};
//! use lejepa_kernels::{LinearActivation, linear};
//!
//! let rows = Tensor::ones((4, 3), DType::F32, &Device::Cpu)?;
//! let weight = Var::ones((2, 3), DType::F32, &Device::Cpu)?;
//! let ys = linear(&rows, &weight, None, LinearActivation::Gelu)?; // (4, 2)
//! let gradients = ys.sum_all()?.backward()?;
//! assert!(gradients.get(&weight).is_some());
//! # Ok::<(), candle_core::Error>(())
//! ```

mod add_bias;
mod add_relu;
#[cfg(test)]
mod agreement;
mod attention;
mod batch_norm;
mod branch;
mod convolve;
mod depthwise;
mod filled;
mod gelu;
pub mod gemm;
mod layer_norm;
mod linear;
mod map_size;
mod max_pool;
mod operation;
mod patches;
mod place_tokens;
#[doc(hidden)]
pub mod profile;
mod response_norm;
mod scale_images;
mod scratch;
mod standardise;
mod sums;
mod transpose;
mod unfold;
mod vectors;
mod wide;
mod window;

pub use add_bias::add_bias;
pub use add_relu::add_relu;
pub use attention::{Heads, attention};
pub use batch_norm::{Activation, Normalised, batch_norm, convolve_and_norm, normalise};
pub use branch::{AttentionBranch, Half, Images, MlpBranch, Outputs, SpatialBranch, halves, spatial_branch};
pub use convolve::convolve;
pub use depthwise::depthwise;
pub use layer_norm::layer_norm;
pub use linear::{LinearActivation, linear};
pub use map_size::MapSize;
pub use max_pool::max_pool;
pub use patches::patches;
pub use place_tokens::place_tokens;
pub use response_norm::response_norm;
pub use scale_images::scale_images;
pub use transpose::transpose;
pub use unfold::unfold;
pub use window::{Window, Windows};

// Candle multiplies matrices with this crate; naming it here switches its AVX-512 kernels on.
use ::gemm as _;

/// Whether the fused forms apply.
pub fn is_fused(tensor: &candle_core::Tensor) -> bool {
    tensor.device().is_cpu() && tensor.dtype() == candle_core::DType::F32
}
