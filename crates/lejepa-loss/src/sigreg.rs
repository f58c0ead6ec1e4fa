//! Sketched isotropic Gaussian regularisation (paper, definition 2 and listing 1).

use std::sync::Arc;

use candle_core::{D, DType, Tensor};
use serde::{Deserialize, Serialize};

use crate::{Directions, Error, Result, Statistic};

/// A statistic over slices of embeddings, view by view.
#[derive(Debug, Clone)]
pub struct Sigreg {
    statistic: Arc<dyn Statistic>,
    slices: usize,
    directions: Directions,
    reduction: Reduction,
}

/// How the statistics of a view's slices become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// The mean: SIGReg.
    #[default]
    Mean,
    /// The largest: the paper's test, whose gradient reaches a single slice.
    Max,
}

impl Sigreg {
    /// The mean of `statistic` over `slices` Gaussian directions that are drawn anew at every step.
    pub fn new(statistic: impl Statistic + 'static, slices: usize) -> Self {
        Self::of(Arc::new(statistic), slices)
    }

    pub(crate) fn of(statistic: Arc<dyn Statistic>, slices: usize) -> Self {
        Self { statistic, slices, directions: Directions::default(), reduction: Reduction::default() }
    }

    /// The same with other directions.
    pub fn with_directions(self, directions: Directions) -> Self {
        Self { directions, ..self }
    }

    /// The same with another reduction over slices.
    pub fn with_reduction(self, reduction: Reduction) -> Self {
        Self { reduction, ..self }
    }

    /// The scalar regulariser at a global step: slices are reduced view by view, then views averaged.
    ///
    /// # Shapes
    /// - `embeddings`: `(views, samples, dim)`, or `(samples, dim)` for a single view
    pub fn forward(&self, embeddings: &Tensor, step: u64) -> Result<Tensor> {
        self.reduce(&self.per_slice(embeddings, step)?)
    }

    /// The scalar regulariser along given `(dim, slices)` directions.
    pub fn forward_along(&self, embeddings: &Tensor, directions: &Tensor) -> Result<Tensor> {
        self.reduce(&self.per_slice_along(embeddings, directions)?)
    }

    /// The statistic of every slice at a global step.
    ///
    /// # Shapes
    /// - `embeddings`: `(.., samples, dim)`
    /// - result: `(.., slices)`
    pub fn per_slice(&self, embeddings: &Tensor, step: u64) -> Result<Tensor> {
        let dim = embeddings.dim(D::Minus1)?;
        let directions = self.directions.draw(dim, self.slices, step, embeddings.device())?;
        self.per_slice_along(embeddings, &directions)
    }

    /// The statistic of every slice along given `(dim, slices)` directions.
    ///
    /// Views are never pooled: each has its own empirical characteristic function. Embeddings that are
    /// not finite are an error that says where.
    ///
    /// # Shapes
    /// - `embeddings`: `(.., samples, dim)`
    /// - result: `(.., slices)`
    pub fn per_slice_along(&self, embeddings: &Tensor, directions: &Tensor) -> Result<Tensor> {
        let per_slice = self.statistic.clone().along(embeddings, directions)?;
        self.check_finite(&per_slice, embeddings)?;
        Ok(per_slice)
    }

    /// The value of a perfect isotropic Gaussian with this many samples, if it is known.
    pub fn floor(&self, samples: usize) -> Option<f64> {
        match self.reduction {
            Reduction::Mean => self.statistic.floor(samples),
            // Depends on how many slices there are and how they overlap.
            Reduction::Max => None,
        }
    }

    fn reduce(&self, per_slice: &Tensor) -> Result<Tensor> {
        Ok(match self.reduction {
            Reduction::Mean => per_slice.mean_all()?,
            Reduction::Max => per_slice.max(D::Minus1)?.mean_all()?,
        })
    }

    fn check_finite(&self, per_slice: &Tensor, embeddings: &Tensor) -> Result<()> {
        let values = flat(per_slice)?;
        let Some(first) = values.iter().position(|value| !value.is_finite()) else { return Ok(()) };
        let slices = per_slice.dim(D::Minus1)?;
        let (view, slice) = (first / slices, first % slices);
        let (samples, dim) = (embeddings.dim(D::Minus2)?, embeddings.dim(D::Minus1)?);
        let embeddings = flat(embeddings)?;
        let of_view = embeddings.get(view * samples * dim..).unwrap_or_default();
        let cause = match of_view.iter().take(samples * dim).position(|value| !value.is_finite()) {
            Some(bad) => format!("sample {} has {} in dimension {}", bad / dim, of_view[bad], bad % dim),
            None => format!("{} of numbers that are finite but out of its range", values[first]),
        };
        Err(Error::NotFinite { statistic: self.statistic.name(), view, slice, cause })
    }
}

fn flat(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(tensor.detach().to_dtype(DType::F64)?.flatten_all()?.to_vec1()?)
}
