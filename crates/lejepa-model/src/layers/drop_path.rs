//! Stochastic depth: in training a branch is left out for an image with probability `p`, and
//! `y = x / (1 - p)` otherwise, so that the mean stays.

use candle_core::Tensor;
use rand::Rng;

use crate::{Pass, Result};

/// Leaves a branch out for some images, in training.
#[derive(Debug, Clone)]
pub struct DropPath {
    probability: f64,
    place: u64,
}

impl DropPath {
    /// `place` tells the layers of a model apart: each draws numbers of its own.
    pub fn new(probability: f64, place: u64) -> Self {
        Self { probability, place }
    }

    /// # Shapes
    /// - `rows` and result: `(images * places, dim)`
    pub fn forward(&self, rows: &Tensor, images: usize, pass: &Pass) -> Result<Tensor> {
        if self.probability == 0. || !pass.is_training() {
            return Ok(rows.clone());
        }
        let (count, dim) = rows.dims2()?;
        let kept = 1. / (1. - self.probability);
        let factors: Vec<f64> = (0..images)
            .filter_map(|image| pass.generator(self.place, image))
            .map(|mut generator| if generator.random::<f64>() < self.probability { 0. } else { kept })
            .collect();
        let factors = Tensor::from_vec(factors, (images, 1, 1), rows.device())?.to_dtype(rows.dtype())?;
        let rows = rows.reshape((images, count / images.max(1), dim))?.broadcast_mul(&factors)?;
        Ok(rows.reshape((count, dim))?)
    }
}
