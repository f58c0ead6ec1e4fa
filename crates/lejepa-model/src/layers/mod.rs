//! The layers that encoders and the projector are composed of.

mod attention;
mod batch_norm;
mod drop_path;
mod layer_norm;
mod layer_scale;
mod linear;
mod mlp;
mod patch_embed;
mod position;

pub use attention::Attention;
pub use batch_norm::BatchNorm;
pub use drop_path::DropPath;
pub use layer_norm::LayerNorm;
pub use layer_scale::LayerScale;
pub use linear::Linear;
pub use mlp::Mlp;
pub use patch_embed::PatchEmbed;
pub use position::resample_position_embedding;
