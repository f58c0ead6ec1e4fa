//! Features with the targets of their images.

use ndarray::{Array2, Axis};

use crate::targets::first_broken;
use crate::{Error, Result, Targets};

/// Features `(images, dim)` with their targets; finite, and as many of one as of the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    values: Array2<f32>,
    targets: Targets,
}

impl Features {
    /// Refuses rows without target, values that are not finite, labels that are not below the number of
    /// classes, and features without a column.
    pub fn new(values: Array2<f32>, targets: Targets) -> Result<Self> {
        if values.nrows() != targets.len() {
            return Err(Error::Mismatch { features: values.nrows(), labels: targets.len() });
        }
        if values.ncols() == 0 {
            return Err(Error::NoColumns);
        }
        if let Some(index) = first_broken(values.mapv(f32::is_finite).view()) {
            return Err(Error::NotFinite { index });
        }
        targets.check()?;
        Ok(Self { values, targets })
    }

    /// Features of images with a class each.
    pub fn labelled(values: Array2<f32>, labels: Vec<usize>, classes: usize) -> Result<Self> {
        Self::new(values, Targets::Classes { labels, classes })
    }

    /// `(images, dim)`
    pub fn values(&self) -> &Array2<f32> {
        &self.values
    }

    /// One target per image.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Images.
    pub fn len(&self) -> usize {
        self.values.nrows()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of a feature.
    pub fn dim(&self) -> usize {
        self.values.ncols()
    }

    /// Some of the images, in the order given.
    pub fn select(&self, images: &[usize]) -> Self {
        Self { values: self.values.select(Axis(0), images), targets: self.targets.select(images) }
    }

    /// The labels, for a probe that predicts classes alone.
    pub(crate) fn labels(&self, probe: &'static str) -> Result<&[usize]> {
        match &self.targets {
            Targets::Classes { labels, .. } => Ok(labels),
            Targets::Values(_) => Err(Error::ClassesOnly { probe }),
        }
    }

    /// Refuses queries of another length, and a training set without samples.
    pub(crate) fn compare(&self, queries: &Array2<f32>) -> Result<()> {
        if self.is_empty() {
            return Err(Error::NoSamples);
        }
        same_dimensions(self.dim(), queries)
    }
}

pub(crate) fn same_dimensions(expected: usize, queries: &Array2<f32>) -> Result<()> {
    match queries.ncols() {
        got if got == expected => Ok(()),
        got => Err(Error::Dimensions { expected, got }),
    }
}
