//! Sketched isotropic Gaussian regularisation (paper, definition 2 and listing 1).

use std::sync::Arc;

use candle_core::{D, Tensor};

use crate::{Result, Statistic, gaussian_directions};

/// The mean statistic over random slices, view by view.
#[derive(Debug, Clone)]
pub struct Sigreg {
    statistic: Arc<dyn Statistic>,
    slices: usize,
}

impl Sigreg {
    /// Averages `statistic` over `slices` directions that are drawn anew at every step.
    pub fn new(statistic: impl Statistic + 'static, slices: usize) -> Self {
        Self { statistic: Arc::new(statistic), slices }
    }

    /// The scalar regulariser at a global step.
    ///
    /// # Shapes
    /// - `embeddings`: `(views, samples, dim)`, or `(samples, dim)` for a single view
    pub fn forward(&self, embeddings: &Tensor, step: u64) -> Result<Tensor> {
        let dim = embeddings.dim(D::Minus1)?;
        let directions = gaussian_directions(dim, self.slices, step, embeddings.device())?;
        self.forward_along(embeddings, &directions)
    }

    /// The scalar regulariser along given `(dim, slices)` directions.
    ///
    /// Views are never pooled: each has its own empirical characteristic function.
    pub fn forward_along(&self, embeddings: &Tensor, directions: &Tensor) -> Result<Tensor> {
        Ok(self.per_slice_along(embeddings, directions)?.mean_all()?)
    }

    /// The statistic of every slice along given `(dim, slices)` directions.
    ///
    /// # Shapes
    /// - `embeddings`: `(.., samples, dim)`
    /// - result: `(.., slices)`
    pub fn per_slice_along(&self, embeddings: &Tensor, directions: &Tensor) -> Result<Tensor> {
        self.statistic.clone().along(embeddings, directions)
    }

    /// The value of a perfect isotropic Gaussian with this many samples, if it is known.
    pub fn floor(&self, samples: usize) -> Option<f64> {
        self.statistic.floor(samples)
    }
}
