//! How much memory a probe takes beside the features, so that nobody has to find out.

use crate::lbfgs::MEMORY;
use crate::{Kernel, Knn, Linear, Logistic, Radius, Ridge};

/// How much a probe is to learn and to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Training samples.
    pub samples: usize,
    /// Length of a feature.
    pub dim: usize,
    /// Classes that have samples, or values.
    pub outputs: usize,
    /// What it is asked about.
    pub queries: usize,
}

const SINGLE: u64 = 4;
const DOUBLE: u64 = 8;
/// Blocks of rows, tiles and lists of neighbours, whatever the probe.
const BLOCKS: u64 = 256 << 20;

impl Size {
    fn of(self) -> [u64; 4] {
        [self.samples, self.dim, self.outputs, self.queries].map(|count| count as u64)
    }

    /// Of the larger of what is asked and what is held out.
    fn asked(self) -> u64 {
        self.queries.max(self.samples) as u64
    }

    /// Numbers of the square matrix that is decomposed, and those of what takes it back to features.
    fn square(self) -> u64 {
        let [samples, dim, ..] = self.of();
        let side = samples.min(dim);
        side.saturating_mul(side).saturating_add(if samples < dim { side.saturating_mul(dim) } else { 0 })
    }

    fn bytes(numbers: u64, width: u64) -> u64 {
        numbers.saturating_mul(width).saturating_add(BLOCKS)
    }
}

impl Knn {
    /// Bytes beside the features, about.
    pub fn memory(&self, size: Size) -> u64 {
        let [samples, dim, _, queries] = size.of();
        let (queries, k) = (queries.min(1 << 16), (self.k as u64).min(samples));
        Size::bytes(queries.saturating_mul(dim + 4 * k + 32), SINGLE)
    }
}

/// Queries are asked as many at a time as fit a fixed room, but at least some hundred.
fn distances(size: Size, values: usize) -> u64 {
    let [_, dim, outputs, _] = size.of();
    let block = (outputs + 160).saturating_mul(values as u64).saturating_add(dim).saturating_mul(100);
    Size::bytes(block.saturating_add(size.asked()), DOUBLE).saturating_add(BLOCKS)
}

impl Radius {
    /// Bytes beside the features, about.
    pub fn memory(&self, size: Size) -> u64 {
        distances(size, 1)
    }
}

impl Kernel {
    /// Bytes beside the features, about.
    pub fn memory(&self, size: Size) -> u64 {
        distances(size, self.bandwidths.len())
    }
}

impl Ridge {
    /// Bytes beside the features, about.
    pub fn memory(&self, size: Size) -> u64 {
        let [samples, dim, outputs, _] = size.of();
        let sides = outputs.saturating_mul(3 * dim + samples.min(dim));
        // The matrix, a copy with the penalty, and its factor.
        Size::bytes(size.square().saturating_mul(3).saturating_add(sides), DOUBLE)
    }
}

impl Logistic {
    /// Bytes beside the features, about.
    pub fn memory(&self, size: Size) -> u64 {
        let [samples, dim, outputs, _] = size.of();
        let parameters = (samples.min(dim) + 16).saturating_mul(outputs);
        // Remembered steps, what a step needs, and sums of every thread.
        let copies = 2 * MEMORY as u64 + 12 + rayon::current_num_threads() as u64;
        // The matrix, its vectors, and what the decomposition needs.
        let square = size.square().saturating_mul(4);
        Size::bytes(parameters.saturating_mul(copies).saturating_add(square), DOUBLE).saturating_add(BLOCKS)
    }
}

impl Linear {
    /// Bytes beside the features, about.
    pub fn memory(&self, size: Size) -> u64 {
        let [_, dim, outputs, _] = size.of();
        let parameters = (dim + 1).saturating_mul(outputs).saturating_mul(6);
        let batch = (self.batch as u64).saturating_mul(3 * dim + 2 * outputs);
        Size::bytes(parameters.saturating_add(batch).saturating_add(size.asked()), DOUBLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABYTE: u64 = 1 << 30;

    #[test]
    fn all_of_imagenet_takes_two_gigabytes_at_most() {
        let size = Size { samples: 1_281_167, dim: 1024, outputs: 1000, queries: 50_000 };
        let logistic = Logistic { c: None, holdout: 0.1, steps: 1000 };
        for bytes in [
            Knn { k: 200, temperature: 0.07 }.memory(size),
            Ridge { lambdas: None, holdout: 0.1 }.memory(size),
            logistic.memory(size),
        ] {
            assert!(bytes < 2 * GIGABYTE, "{bytes}");
        }
    }

    #[test]
    fn ten_samples_need_no_square_of_their_dimensions() {
        let ridge = Ridge { lambdas: None, holdout: 0.1 };
        let pixels = |samples| Size { samples, dim: 150_528, outputs: 10, queries: 10_000 };
        assert!(ridge.memory(pixels(10)) < GIGABYTE);
        assert!(ridge.memory(pixels(200_000)) > 100 * GIGABYTE);
        let endless = Size { samples: usize::MAX, dim: usize::MAX, outputs: usize::MAX, queries: usize::MAX };
        assert!(ridge.memory(endless) > 1 << 60);
    }
}
