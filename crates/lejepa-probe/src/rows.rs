//! Some rows of a matrix of features, borrowed: neither a draw nor a fold copies any.

use std::ops::Range;

use ndarray::{Array2, ArrayView1};

use crate::{Error, Result};

/// Features `(rows, dim)`: all of a matrix, or those of its rows that were chosen.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    values: &'a Array2<f32>,
    places: Places<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Places<'a> {
    /// So many, from the first on.
    Following {
        first: usize,
        count: usize,
    },
    Chosen(&'a [usize]),
}

impl<'a> From<&'a Array2<f32>> for Rows<'a> {
    fn from(values: &'a Array2<f32>) -> Self {
        Self { values, places: Places::Following { first: 0, count: values.nrows() } }
    }
}

impl<'a> Rows<'a> {
    /// Those rows of a matrix, which must all be there.
    pub(crate) fn chosen(values: &'a Array2<f32>, rows: &'a [usize]) -> Self {
        Self { values, places: Places::Chosen(rows) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self.places {
            Places::Following { count, .. } => count,
            Places::Chosen(rows) => rows.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of a row.
    pub fn dim(&self) -> usize {
        self.values.ncols()
    }

    /// One of them.
    #[inline(always)]
    pub(crate) fn row(&self, index: usize) -> ArrayView1<'a, f32> {
        self.values.row(match self.places {
            Places::Following { first, .. } => first + index,
            Places::Chosen(rows) => rows[index],
        })
    }

    /// Some that follow each other.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let places = match self.places {
            Places::Following { first, .. } => {
                Places::Following { first: first + range.start, count: range.len() }
            }
            Places::Chosen(rows) => Places::Chosen(&rows[range]),
        };
        Self { values: self.values, places }
    }

    /// Parts of so many rows, with the number of the first of each.
    pub(crate) fn blocks(&self, rows: usize) -> impl Iterator<Item = (usize, Self)> + use<'a> {
        let all = *self;
        let firsts = (0..all.len()).step_by(rows.max(1));
        firsts.map(move |first| (first, all.part(first..all.len().min(first + rows.max(1)))))
    }

    /// Refuses rows of another length.
    pub(crate) fn of_length(self, expected: usize) -> Result<Self> {
        match self.dim() {
            got if got == expected => Ok(self),
            got => Err(Error::Dimensions { expected, got }),
        }
    }
}
