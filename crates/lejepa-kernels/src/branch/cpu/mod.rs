//! Branches on the CPU, a few images at a time.

mod attention;
mod chain;
mod heads;
mod mlp;
mod normed_linear;
mod rows;
mod scaled_linear;
mod spatial;

pub(super) use self::chain::Chain;
use self::normed_linear::NormedLinear;
use self::scaled_linear::ScaledLinear;
pub(super) use self::spatial::Spatial;
use super::Images;

/// Rows at about which a task's values fill the cache.
const ROWS_AT_A_TIME: usize = 128;
/// Rows at least of which the gradients of weights are summed before sums are added.
const MIN_ROWS_OF_A_SUM: usize = 768;
/// Sums at most: each takes the memory of the weights.
const MAX_SUMS: usize = 8;

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
        let sums = (self.count() * self.tokens / MIN_ROWS_OF_A_SUM).clamp(1, MAX_SUMS);
        let task = self.of_task();
        self.count().div_ceil(sums).next_multiple_of(task)
    }

    /// Place and factor of the images from `first` on that are not left out.
    fn kept(&self, first: usize, count: usize) -> Vec<KeptImage> {
        let factors = self.factors[first..].iter().take(count).enumerate();
        factors
            .filter(|(_, factor)| **factor != 0.)
            .map(|(image, &factor)| KeptImage { image, factor })
            .collect()
    }
}

/// An image of a task that is not left out.
#[derive(Debug, Clone, Copy)]
struct KeptImage {
    /// Its place among the task's images.
    image: usize,
    factor: f32,
}
