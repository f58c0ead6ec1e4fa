//! Features with the targets of their images.

use ndarray::Array2;
use rayon::prelude::*;

use crate::rows::Rows;
use crate::{Error, Result, Targets};

/// Features `(images, dim)` with their targets; finite, and as many of one as of the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    values: Array2<f32>,
    targets: Targets,
}

/// Some of the images, or all: what a probe learns from.
#[derive(Debug, Clone, Copy)]
pub struct Samples<'a> {
    features: &'a Features,
    /// Their images, if they are not all.
    chosen: Option<&'a [usize]>,
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
        let rows = Rows::from(&values);
        let broken = |row: &usize| rows.row(*row).iter().any(|value| !value.is_finite());
        if let Some(index) = (0..rows.len()).into_par_iter().find_first(broken) {
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

    /// Some of the images, in the order given; an image that is not there is an error.
    pub fn only<'a>(&'a self, images: &'a [usize]) -> Result<Samples<'a>> {
        match images.iter().find(|image| **image >= self.len()) {
            Some(&image) => Err(Error::NoImage { image, images: self.len() }),
            None => Ok(Samples { features: self, chosen: Some(images) }),
        }
    }

    /// The labels, for what knows classes alone.
    pub(crate) fn labels(&self, probe: &'static str) -> Result<&[usize]> {
        self.targets.labels().ok_or(Error::ClassesOnly { probe })
    }
}

impl<'a> From<&'a Features> for Samples<'a> {
    fn from(features: &'a Features) -> Self {
        Self { features, chosen: None }
    }
}

impl<'a> Samples<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.chosen.map_or(self.features.len(), <[usize]>::len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their features.
    pub fn rows(&self) -> Rows<'a> {
        match self.chosen {
            Some(images) => Rows::chosen(&self.features.values, images),
            None => Rows::from(&self.features.values),
        }
    }

    pub(crate) fn dim(&self) -> usize {
        self.features.dim()
    }

    /// Targets of all images, of which [`image`](Self::image) tells one.
    pub(crate) fn targets(&self) -> &'a Targets {
        &self.features.targets
    }

    /// The image of a sample.
    #[inline(always)]
    pub(crate) fn image(&self, sample: usize) -> usize {
        self.chosen.map_or(sample, |chosen| chosen[sample])
    }

    /// Other images of the same features, all of them there.
    pub(crate) fn others<'b>(&self, images: &'b [usize]) -> Samples<'b>
    where
        'a: 'b,
    {
        Samples { features: self.features, chosen: Some(images) }
    }

    pub(crate) fn needs_classes(&self, probe: &'static str) -> Result<()> {
        self.features.labels(probe).map(|_| ())
    }

    pub(crate) fn needs_some(&self) -> Result<()> {
        if self.is_empty() { Err(Error::NoSamples) } else { Ok(()) }
    }
}
