//! Sketched isotropic Gaussian regularisation (paper, definition 2 and listing 1).

use candle_core::Tensor;

use crate::{EppsPulley, Result, gaussian_directions};

/// The mean Epps-Pulley statistic over random slices, view by view.
#[derive(Debug, Clone)]
pub struct Sigreg {
    statistic: EppsPulley,
    slices: usize,
}

impl Sigreg {
    /// Averages `statistic` over `slices` directions that are drawn anew at every step.
    pub fn new(statistic: EppsPulley, slices: usize) -> Self {
        Self { statistic, slices }
    }

    /// The scalar regulariser at a global step.
    ///
    /// # Shapes
    /// - `embeddings`: `(views, samples, dim)`, or `(samples, dim)` for a single view
    pub fn forward(&self, embeddings: &Tensor, step: u64) -> Result<Tensor> {
        let dim = embeddings.dim(candle_core::D::Minus1)?;
        let directions = gaussian_directions(dim, self.slices, step, embeddings.device())?;
        self.forward_along(embeddings, &directions.to_dtype(embeddings.dtype())?)
    }

    /// The scalar regulariser along given `(dim, slices)` directions.
    ///
    /// Views are never pooled: each has its own empirical characteristic function.
    pub fn forward_along(&self, embeddings: &Tensor, directions: &Tensor) -> Result<Tensor> {
        let projected = embeddings.broadcast_matmul(directions)?; // (views, samples, slices)
        Ok(self.statistic.per_slice(&projected)?.mean_all()?)
    }

    /// The value of a perfect isotropic Gaussian.
    pub fn floor(&self) -> f64 {
        self.statistic.floor()
    }
}
