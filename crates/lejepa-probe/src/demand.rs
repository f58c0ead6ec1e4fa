//! How much memory a probe takes beside the features, so that nobody has to find out.

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

/// Blocks of rows, tiles and lists of neighbours, whatever the probe.
pub(crate) const BLOCKS: u64 = 256 << 20;

impl Size {
    pub(crate) fn of(self) -> [u64; 4] {
        [self.samples, self.dim, self.outputs, self.queries].map(|count| count as u64)
    }

    /// Of the larger of what is asked and what is held out.
    pub(crate) fn asked(self) -> u64 {
        self.queries.max(self.samples) as u64
    }

    /// Numbers of the square matrix that is decomposed, and those of what takes it back to features.
    pub(crate) fn square(self) -> u64 {
        let [samples, dim, ..] = self.of();
        let side = samples.min(dim);
        side.saturating_mul(side).saturating_add(if samples < dim { side.saturating_mul(dim) } else { 0 })
    }

    pub(crate) fn bytes(numbers: u64, width: usize) -> u64 {
        numbers.saturating_mul(width as u64).saturating_add(BLOCKS)
    }
}

/// Of probes that compare distances: queries are asked as many at a time as fit a fixed room, but at least some
/// hundred. `values` are those that are asked together.
pub(crate) fn distances_memory(size: Size, values: usize) -> u64 {
    let [_, dim, outputs, _] = size.of();
    let block = (outputs + 160).saturating_mul(values as u64).saturating_add(dim).saturating_mul(100);
    Size::bytes(block.saturating_add(size.asked()), size_of::<f64>()).saturating_add(BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimator, Knn, Logistic, Ridge};

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
