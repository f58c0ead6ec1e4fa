//! Stochastic depth: a residual branch is left out for some images, and stronger for the others.
//!
//! ```text
//! y = x * keep / (1 - p),   keep = 0 with probability p, else 1, drawn per image
//! ```

use candle_core::Tensor;
use lejepa_kernels::scale_images;
use rand::Rng;

use crate::{Pass, Result};

/// Stochastic depth of one residual branch.
#[derive(Debug, Clone, Copy)]
pub struct DropPath {
    probability: f64,
    place: u64,
}

impl DropPath {
    /// Leaves the branch out with this probability; every place in a model draws numbers of its own.
    pub fn new(probability: f64, place: u64) -> Self {
        Self { probability, place }
    }

    /// For the branch `index` of `count`: from nothing at the first up to `largest` at the last.
    pub fn rising(largest: f64, index: usize, count: usize) -> Self {
        let share = if count > 1 { index as f64 / (count - 1) as f64 } else { 0. };
        Self::new(largest * share, index as u64)
    }

    /// The identity in evaluation.
    ///
    /// # Shapes
    /// - `rows` and result: `(images * places, dim)`
    pub fn forward(&self, rows: &Tensor, images: usize, pass: &Pass) -> Result<Tensor> {
        match self.factors(images, pass) {
            Some(factors) => Ok(scale_images(rows, factors)?),
            None => Ok(rows.clone()),
        }
    }

    /// What every image is multiplied by; nothing where that is one for all.
    pub(crate) fn factors(&self, images: usize, pass: &Pass) -> Option<Vec<f32>> {
        if self.probability <= 0. || !pass.is_dropping() {
            return None;
        }
        let factor = |image| {
            let dropped = pass.generator(self.place, image)?.random::<f64>() < self.probability;
            Some(if dropped { 0. } else { (1. / (1. - self.probability)) as f32 })
        };
        (0..images).map(factor).collect()
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    fn forward(images: usize, pass: &Pass) -> Vec<Vec<f32>> {
        let rows = Tensor::ones((images * 3, 2), DType::F32, &Device::Cpu).unwrap();
        let rows = DropPath::new(0.25, 7).forward(&rows, images, pass).unwrap();
        rows.reshape((images, 6)).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn whole_images_are_dropped_and_the_mean_is_kept() {
        let images = forward(4000, &Pass::train(1));
        let kept = images.iter().filter(|image| image[0] > 0.).count();
        for image in &images {
            assert!(image.iter().all(|&value| value == image[0]), "{image:?}");
            assert!(image[0] == 0. || (image[0] - 4. / 3.).abs() < 1e-6, "{image:?}");
        }
        // Four standard deviations of 4000 draws are 110.
        assert!((2890..=3110).contains(&kept), "{kept}");
    }

    #[test]
    fn evaluation_drops_nothing() {
        for pass in [Pass::eval(), Pass::train(1).without_dropping()] {
            assert!(forward(50, &pass).iter().flatten().all(|&value| value == 1.));
        }
    }

    #[test]
    fn an_image_meets_the_same_fate_in_any_part_of_a_batch() {
        let whole = forward(20, &Pass::train(1));
        assert_eq!(whole[8..], forward(12, &Pass::train(1).starting_at(8)));
        assert_ne!(whole, forward(20, &Pass::train(2)));
    }
}
