//! What a probe learns of its samples: a column for every class that has any, or for every value. Classes
//! without samples cost nothing.

use std::collections::BTreeSet;

use crate::features::Samples;
use crate::targets::TargetsView;
use crate::{Error, Result};

/// Columns of a probe's scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// One for every class that has samples.
    Classes {
        /// These classes, rising.
        known: Vec<usize>,
        /// How many classes there are, with those that have none.
        all: usize,
    },
    /// So many values.
    Values(usize),
}

/// The targets of samples.
#[derive(Debug, Clone)]
pub(crate) struct Learnt<'a> {
    pub(crate) samples: Samples<'a>,
    pub(crate) columns: Columns,
    /// The column of every sample's class; empty for values.
    pub(crate) own: Vec<u32>,
}

impl Columns {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Classes { known, .. } => known.len(),
            Self::Values(count) => *count,
        }
    }

    /// Columns of scores for all classes.
    pub(crate) fn outputs(&self) -> usize {
        match self {
            Self::Classes { all, .. } => *all,
            Self::Values(count) => *count,
        }
    }

    /// Puts the scores of one query into a row for all outputs.
    pub(crate) fn spread(&self, scores: &[f64], mut to: ndarray::ArrayViewMut1<'_, f64>) {
        match self {
            Self::Classes { known, .. } => {
                known.iter().zip(scores).for_each(|(&class, &score)| to[class] = score);
            }
            Self::Values(_) => to.iter_mut().zip(scores).for_each(|(to, &score)| *to = score),
        }
    }

    /// The classes of the columns.
    pub(crate) fn known(&self) -> Result<&[usize]> {
        match self {
            Self::Classes { known, .. } => Ok(known),
            Self::Values(_) => Err(Error::ClassesOnly { probe: "a ranking of classes" }),
        }
    }
}

impl<'a> Learnt<'a> {
    pub(crate) fn new(samples: Samples<'a>) -> Self {
        let (columns, own) = match samples.targets() {
            TargetsView::Classes { labels, classes } => {
                let label = |sample| labels[samples.image(sample)];
                let known: BTreeSet<usize> = (0..samples.len()).map(label).collect();
                let known: Vec<usize> = known.into_iter().collect();
                let column = |sample| known.partition_point(|&class| class < label(sample)) as u32;
                let own = (0..samples.len()).map(column).collect();
                (Columns::Classes { known, all: *classes }, own)
            }
            TargetsView::Values(values) => (Columns::Values(values.dim().1), Vec::new()),
        };
        Self { samples, columns, own }
    }

    /// Adds `weight` times the target of one sample to `sums`, one entry per column.
    #[inline(always)]
    pub(crate) fn add(&self, sample: usize, weight: f64, sums: &mut [f64]) {
        match self.samples.targets() {
            TargetsView::Classes { .. } => sums[self.own[sample] as usize] += weight,
            TargetsView::Values(values) => {
                let row = values.row(self.samples.image(sample));
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
            }
        }
    }

    /// The mean of every column.
    pub(crate) fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.; self.columns.len()];
        (0..self.samples.len()).for_each(|sample| self.add(sample, 1., &mut mean));
        mean.iter_mut().for_each(|mean| *mean /= self.samples.len().max(1) as f64);
        mean
    }
}
