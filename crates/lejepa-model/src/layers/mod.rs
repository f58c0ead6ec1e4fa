//! The layers that encoders and the projector are composed of.

mod attention;
mod batch_norm;
mod convolution;
mod depthwise_convolution;
mod drop_path;
mod feature_map;
mod layer_norm;
mod layer_scale;
mod linear;
mod mlp;
mod patch_embed;
mod position;
mod response_norm;

pub use attention::Attention;
pub use batch_norm::BatchNorm;
pub use convolution::{Convolution, ConvolutionShape};
pub use depthwise_convolution::DepthwiseConvolution;
pub use drop_path::DropPath;
pub use feature_map::FeatureMap;
pub use layer_norm::LayerNorm;
pub use layer_scale::LayerScale;
pub use linear::Linear;
pub use mlp::Mlp;
pub use patch_embed::PatchEmbed;
pub use position::resample_position_embedding;
pub use response_norm::ResponseNorm;
