//! Some rows of a matrix of features, borrowed: neither a draw nor a fold copies any.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, s};

use crate::matrix::Matrix;
use crate::{Error, Features, Result};

/// Features `(rows, dim)`: all of a matrix, or those of its rows that were chosen. A row of several tokens holds
/// one after the other, and `dim` numbers in all.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    values: Matrix<'a, f32>,
    tokens: usize,
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
        Matrix::from(values).into()
    }
}

impl<'a> From<Matrix<'a, f32>> for Rows<'a> {
    fn from(values: Matrix<'a, f32>) -> Self {
        Self { values, tokens: 1, places: Places::Following { first: 0, count: values.dim().0 } }
    }
}

impl<'a> From<&'a Features> for Rows<'a> {
    fn from(features: &'a Features) -> Self {
        Self { tokens: features.tokens(), ..features.values().into() }
    }
}

impl<'a> Rows<'a> {
    /// Those of the rows, which must be all of a matrix and hold them all.
    pub(crate) fn chosen(self, rows: &'a [usize]) -> Self {
        Self { places: Places::Chosen(rows), ..self }
    }

    /// All numbers, if they lie in memory row by row.
    pub(crate) fn slice(&self) -> Option<&'a [f32]> {
        match self.places {
            Places::Following { first, count } => self.values.slice(first..first + count),
            Places::Chosen(_) => None,
        }
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
        self.values.dim().1
    }

    /// One of them.
    #[inline(always)]
    pub(crate) fn row(&self, index: usize) -> ArrayView1<'a, f32> {
        let place = match self.places {
            Places::Following { first, .. } => first + index,
            Places::Chosen(rows) => rows[index],
        };
        self.values.row(place)
    }

    /// The tokens of one of them, for a probe that tells them apart; a plain row is one token.
    ///
    /// # Shapes
    /// - each `(dim / tokens)`
    pub fn tokens(&self, index: usize) -> impl ExactSizeIterator<Item = ArrayView1<'a, f32>> + use<'a> {
        let (row, dim) = (self.row(index), self.dim() / self.tokens);
        (0..self.tokens).map(move |token| row.slice_move(s![token * dim..(token + 1) * dim]))
    }

    /// Some that follow each other.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let places = match self.places {
            Places::Following { first, .. } => {
                Places::Following { first: first + range.start, count: range.len() }
            }
            Places::Chosen(rows) => Places::Chosen(&rows[range]),
        };
        Self { places, ..*self }
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
