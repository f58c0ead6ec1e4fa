//! Features with the targets of their images.
//!
//! ```text
//! plain     (images, dim)
//! tokens    (images, tokens, dim)     kept as (images, tokens dim): what one token is, only a probe of tokens asks
//! ```

use ndarray::{Array2, Array3};
use rayon::prelude::*;

use crate::rows::Rows;
use crate::targets::TargetsView;
use crate::{Error, Result, Targets};

/// Features `(images, dim)` with their targets; finite, and as many of one as of the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    values: Array2<f32>,
    /// 1 of plain features.
    tokens: usize,
    targets: Targets,
}

/// Some of the images, or all: what a probe learns from.
#[derive(Debug, Clone, Copy)]
pub struct Samples<'a> {
    all: Rows<'a>,
    targets: TargetsView<'a>,
    /// Their images, if they are not all.
    chosen: Option<&'a [usize]>,
}

impl Features {
    /// Refuses rows without target, values that are not finite, labels that are not below the number of
    /// classes, and features without a column.
    pub fn new(values: Array2<f32>, targets: Targets) -> Result<Self> {
        Samples::checked((&values).into(), targets.view())?;
        Ok(Self { values, tokens: 1, targets })
    }

    /// Features of several tokens per image, such as those of patches. [`Rows::tokens`] tells them apart; a probe
    /// that does not ask sees them one behind the other, and [`mean_of_tokens`](Self::mean_of_tokens) makes plain
    /// features of them.
    ///
    /// # Shapes
    /// - `values`: `(images, tokens, dim)`
    pub fn with_tokens(values: Array3<f32>, targets: Targets) -> Result<Self> {
        let (images, tokens, dim) = values.dim();
        let values = match values.is_standard_layout() {
            true => values,
            false => values.as_standard_layout().into_owned(),
        };
        let rows = values.into_shape_with_order((images, tokens * dim)).map_err(|_| Error::Layout)?;
        Ok(Self { tokens, ..Self::new(rows, targets)? })
    }

    /// Features of images with a class each.
    pub fn labelled(values: Array2<f32>, labels: Vec<usize>, classes: usize) -> Result<Self> {
        Self::new(values, Targets::Classes { labels, classes })
    }

    /// `(images, dim)`, tokens one behind the other
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

    /// Length of a feature, of all tokens together.
    pub fn dim(&self) -> usize {
        self.values.ncols()
    }

    /// Tokens of an image; 1 of plain features.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Plain features: the mean of every image's tokens.
    pub fn mean_of_tokens(&self) -> Self {
        let (rows, dim) = (Rows::from(self), self.dim() / self.tokens);
        let mut values = Array2::zeros((self.len(), dim));
        let mut sums = vec![0.; dim];
        for (index, mut to) in values.outer_iter_mut().enumerate() {
            sums.fill(0.);
            for token in rows.tokens(index) {
                sums.iter_mut().zip(token).for_each(|(sum, value)| *sum += f64::from(*value));
            }
            to.iter_mut().zip(&sums).for_each(|(to, sum)| *to = (sum / self.tokens as f64) as f32);
        }
        Self { values, tokens: 1, targets: self.targets.clone() }
    }

    /// Some of the images, in the order given; an image that is not there is an error.
    pub fn only<'a>(&'a self, images: &'a [usize]) -> Result<Samples<'a>> {
        match images.iter().find(|image| **image >= self.len()) {
            Some(&image) => Err(Error::NoImage { image, images: self.len() }),
            None => Ok(Samples { chosen: Some(images), ..self.into() }),
        }
    }
}

impl<'a> From<&'a Features> for Samples<'a> {
    fn from(features: &'a Features) -> Self {
        Self { all: features.into(), targets: features.targets.view(), chosen: None }
    }
}

impl<'a> Samples<'a> {
    /// All rows of a matrix, with their targets, as [`Features::new`] takes them.
    pub(crate) fn checked(all: Rows<'a>, targets: TargetsView<'a>) -> Result<Self> {
        if all.len() != targets.len() {
            return Err(Error::Mismatch { features: all.len(), labels: targets.len() });
        }
        if all.dim() == 0 {
            return Err(Error::NoColumns);
        }
        let broken = |row: &usize| all.row(*row).iter().any(|value| !value.is_finite());
        if let Some(index) = (0..all.len()).into_par_iter().find_first(broken) {
            return Err(Error::NotFinite { index });
        }
        targets.check()?;
        Ok(Self { all, targets, chosen: None })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.chosen.map_or(self.all.len(), <[usize]>::len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their features.
    pub fn rows(&self) -> Rows<'a> {
        match self.chosen {
            Some(images) => self.all.chosen(images),
            None => self.all,
        }
    }

    pub(crate) fn dim(&self) -> usize {
        self.all.dim()
    }

    /// Targets of all images, of which [`image`](Self::image) tells one.
    pub(crate) fn targets(&self) -> &TargetsView<'a> {
        &self.targets
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
        Samples { chosen: Some(images), ..*self }
    }

    pub(crate) fn needs_classes(&self, probe: &'static str) -> Result<()> {
        match self.targets {
            TargetsView::Classes { .. } => Ok(()),
            TargetsView::Values(_) => Err(Error::ClassesOnly { probe }),
        }
    }

    pub(crate) fn needs_some(&self) -> Result<()> {
        if self.is_empty() { Err(Error::NoSamples) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Axis, array};

    use super::*;
    use crate::RidgeSolution;
    use crate::solution::Solution;

    fn tokens() -> Array3<f32> {
        Array3::from_shape_fn((4, 3, 2), |(image, token, column)| (image * 7 + token * 3 + column * 5) as f32)
    }

    #[test]
    fn tokens_are_told_apart_and_their_mean_is_a_plain_feature() {
        let values = tokens();
        let targets = Targets::Values(array![[1.], [2.], [3.], [5.]]);
        let features = Features::with_tokens(values.clone(), targets.clone()).unwrap();
        assert_eq!((features.len(), features.tokens(), features.dim()), (4, 3, 6));
        let samples = features.only(&[3, 1]).unwrap();
        let of_first: Vec<_> = samples.rows().tokens(0).collect();
        assert_eq!(of_first, values.index_axis(Axis(0), 3).outer_iter().collect::<Vec<_>>());
        let pooled = features.mean_of_tokens();
        let Some(mean) = values.mean_axis(Axis(1)) else { unreachable!() };
        assert_eq!(pooled, Features::new(mean, targets).unwrap());
        assert_eq!(Rows::from(&pooled).tokens(2).collect::<Vec<_>>(), [pooled.values().row(2)]);
    }

    /// Whatever the order of its numbers in memory.
    #[test]
    fn a_probe_that_knows_no_tokens_sees_one_long_feature() {
        let targets = Targets::Classes { labels: vec![0, 1, 0, 1], classes: 2 };
        let turned = tokens().permuted_axes([1, 0, 2]).as_standard_layout().into_owned();
        let features = Features::with_tokens(turned.permuted_axes([1, 0, 2]), targets.clone()).unwrap();
        let Ok(flat) = tokens().into_shape_with_order((4, 6)) else { unreachable!() };
        let plain = Features::new(flat, targets).unwrap();
        assert_eq!(features.values(), plain.values());
        let scores =
            |train: &Features| RidgeSolution::fit(train, 1.).unwrap().scores(plain.values()).unwrap();
        assert_eq!(scores(&features), scores(&plain));
        assert!(Features::with_tokens(Array3::zeros((4, 0, 2)), plain.targets().clone()).is_err());
    }
}
