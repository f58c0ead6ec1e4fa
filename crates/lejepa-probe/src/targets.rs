//! What a probe is to predict: a class per image, or one or several values.

use ndarray::Array2;

use crate::matrix::Matrix;
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

/// Borrowed targets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TargetsView<'a> {
    Classes { labels: &'a [usize], classes: usize },
    Values(Matrix<'a, f64>),
}

impl Targets {
    /// Images.
    pub fn len(&self) -> usize {
        self.view().len()
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

    pub(crate) fn view(&self) -> TargetsView<'_> {
        match self {
            Self::Classes { labels, classes } => TargetsView::Classes { labels, classes: *classes },
            Self::Values(values) => TargetsView::Values(values.into()),
        }
    }
}

impl TargetsView<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Classes { labels, .. } => labels.len(),
            Self::Values(values) => values.dim().0,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Classes { classes: 0, .. } => Err(Error::NoColumns),
            Self::Classes { labels, classes } => {
                match labels.iter().enumerate().find(|&(_, label)| label >= classes) {
                    Some((index, &label)) => Err(Error::Label { index, classes: *classes, label }),
                    None => Ok(()),
                }
            }
            Self::Values(values) if values.dim().1 == 0 => Err(Error::NoColumns),
            Self::Values(values) => {
                let broken = |row: &usize| values.row(*row).iter().any(|value| !value.is_finite());
                match (0..values.dim().0).find(broken) {
                    Some(index) => Err(Error::TargetNotFinite { index }),
                    None => Ok(()),
                }
            }
        }
    }
}
