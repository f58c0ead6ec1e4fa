//! What a probe is to predict: a class per image, or one or several values.

use ndarray::{Array2, ArrayView2, Axis};

use crate::{Error, Result};

/// One target per image.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// A class per image.
    Classes {
        /// All below `classes`.
        labels: Vec<usize>,
        /// How many classes there are, with those that no image has.
        classes: usize,
    },
    /// `(images, outputs)`: one or several values per image.
    Values(Array2<f64>),
}

impl Targets {
    /// Images.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes { labels, .. } => labels.len(),
            Self::Values(values) => values.nrows(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The class of every image; nothing for values.
    pub fn labels(&self) -> Option<&[usize]> {
        match self {
            Self::Classes { labels, .. } => Some(labels),
            Self::Values(_) => None,
        }
    }

    /// Columns of a probe's scores: classes, or values per image.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Classes { classes, .. } => *classes,
            Self::Values(values) => values.ncols(),
        }
    }

    /// Values as they are, classes as a one in the column of the class.
    ///
    /// # Shapes
    /// - result: `(images, outputs)`
    pub fn one_hot(&self) -> Array2<f64> {
        match self {
            Self::Classes { labels, classes } => {
                let mut values = Array2::zeros((labels.len(), *classes));
                labels.iter().enumerate().for_each(|(image, &label)| values[(image, label)] = 1.);
                values
            }
            Self::Values(values) => values.clone(),
        }
    }

    /// Adds `weight` times the target of one image to `sums`, one entry per output.
    pub(crate) fn add(&self, image: usize, weight: f64, sums: &mut [f64]) {
        match self {
            Self::Classes { labels, .. } => sums[labels[image]] += weight,
            Self::Values(values) => {
                sums.iter_mut().zip(values.row(image)).for_each(|(sum, value)| *sum += weight * value);
            }
        }
    }

    pub(crate) fn select(&self, images: &[usize]) -> Self {
        match self {
            Self::Classes { labels, classes } => {
                let labels = images.iter().map(|&image| labels[image]).collect();
                Self::Classes { labels, classes: *classes }
            }
            Self::Values(values) => Self::Values(values.select(Axis(0), images)),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.outputs() == 0 {
            return Err(Error::NoColumns);
        }
        match self {
            Self::Classes { labels, classes } => {
                match labels.iter().enumerate().find(|&(_, label)| label >= classes) {
                    Some((index, &label)) => Err(Error::Label { index, classes: *classes, label }),
                    None => Ok(()),
                }
            }
            Self::Values(values) => match first_broken(values.mapv(f64::is_finite).view()) {
                Some(index) => Err(Error::TargetNotFinite { index }),
                None => Ok(()),
            },
        }
    }
}

/// The first row with something that is not finite.
pub(crate) fn first_broken(finite: ArrayView2<'_, bool>) -> Option<usize> {
    finite.outer_iter().position(|row| row.iter().any(|finite| !finite))
}
