//! A residual branch of a transformer as one operation: norm, layers, factor and sum.
//!
//! ```text
//! y = x + factor[image] gamma branch(norm(x))
//! ```
//!
//! A few images at a time go through all of it while their values are in the cache of a core. What the
//! backward pass needs and cannot compute again for little is kept, the rest is never in memory as a whole.
//! An image whose factor is zero costs nothing. Weight and bias of the norm and `gamma` are multiplied into
//! the layers beside them.

mod composed;
mod cpu;
mod half;
mod spatial;

pub use self::half::{AttentionBranch, Half, MlpBranch, Outputs, halves};
pub use self::spatial::{SpatialBranch, spatial_branch};

/// The images of a batch.
#[derive(Debug, Clone)]
pub struct Images {
    /// Rows of an image.
    pub tokens: usize,
    /// What every image's branch is multiplied by.
    pub factors: Vec<f32>,
}
