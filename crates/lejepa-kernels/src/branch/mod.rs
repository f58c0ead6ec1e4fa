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

mod attention;
mod chain;
mod heads;
mod mlp;
mod normed_linear;
mod rows;
mod scaled_linear;
mod spatial;

pub use self::attention::{AttentionBranch, Outputs};
pub use self::chain::{Half, halves};
pub use self::mlp::MlpBranch;
use self::normed_linear::NormedLinear;
use self::scaled_linear::ScaledLinear;
pub use self::spatial::{SpatialBranch, spatial_branch};

/// Rows at about which a task's values fill the cache.
const ROWS_AT_A_TIME: usize = 128;
/// Rows at least of which the gradients of weights are summed before sums are added.
const ROWS_OF_A_SUM: usize = 768;
/// Sums at most: each takes the memory of the weights.
const SUMS: usize = 8;

/// The images of a batch.
#[derive(Debug, Clone)]
pub struct Images {
    /// Rows of an image.
    pub tokens: usize,
    /// What every image's branch is multiplied by.
    pub factors: Vec<f32>,
}

impl Images {
    fn count(&self) -> usize {
        self.factors.len()
    }

    /// Images of a task: enough rows for the products, and tasks for all threads.
    fn of_task(&self) -> usize {
        let images = (ROWS_AT_A_TIME / self.tokens.max(1)).clamp(1, self.count().max(1));
        // Alike tasks, a number of them that does not depend on the machine.
        self.count().div_ceil(self.count().div_ceil(images).next_multiple_of(2)).max(1)
    }

    /// Images whose gradients are summed by one task: the sums do not depend on the number of threads.
    fn of_sum(&self) -> usize {
        let sums = (self.count() * self.tokens / ROWS_OF_A_SUM).clamp(1, SUMS);
        let task = self.of_task();
        self.count().div_ceil(sums).next_multiple_of(task)
    }

    /// Place and factor of the images from `first` on that are not left out.
    fn kept(&self, first: usize, count: usize) -> Vec<Kept> {
        let factors = self.factors[first..].iter().take(count).enumerate();
        factors.filter(|(_, factor)| **factor != 0.).map(|(image, &factor)| Kept { image, factor }).collect()
    }
}

/// An image of a task that is not left out.
#[derive(Debug, Clone, Copy)]
struct Kept {
    /// Its place among the task's images.
    image: usize,
    factor: f32,
}
