//! Features with the labels of their images.

use ndarray::Array2;

use crate::{Error, Result};

/// Features `(images, dim)` with their labels; finite, and as many of one as of the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// One row per image.
    pub values: Array2<f32>,
    /// One class per image.
    pub labels: Vec<usize>,
}

impl Features {
    /// Refuses rows without label and values that are not finite.
    pub fn new(values: Array2<f32>, labels: Vec<usize>) -> Result<Self> {
        if values.nrows() != labels.len() {
            return Err(Error::Mismatch { features: values.nrows(), labels: labels.len() });
        }
        let broken = values.outer_iter().position(|row| row.iter().any(|value| !value.is_finite()));
        match broken {
            Some(index) => Err(Error::NotFinite { index }),
            None => Ok(Self { values, labels }),
        }
    }
}
