//! A borrowed matrix: an array of this crate's version of `ndarray`, or the numbers of one of another version.
//!
//! `ArrayView` would hold both, but is invariant in its lifetime: views of different lifetimes do not mix.

use ndarray::{Array2, ArrayView1};

use crate::{Error, Result};

/// `(rows, columns)`
#[derive(Debug)]
pub(crate) enum Matrix<'a, T> {
    Array(&'a Array2<T>),
    /// Row by row.
    Numbers {
        values: &'a [T],
        dim: (usize, usize),
    },
}

impl<T> Copy for Matrix<'_, T> {}

impl<T> Clone for Matrix<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, T> Matrix<'a, T> {
    /// Of as many numbers as there are rows times columns.
    pub(crate) fn new(values: &'a [T], (rows, columns): (usize, usize)) -> Result<Self> {
        match rows.checked_mul(columns) {
            Some(count) if count == values.len() => Ok(Self::Numbers { values, dim: (rows, columns) }),
            _ => Err(Error::Layout),
        }
    }

    /// Rows and columns.
    pub(crate) fn dim(&self) -> (usize, usize) {
        match *self {
            Self::Array(array) => array.dim(),
            Self::Numbers { dim, .. } => dim,
        }
    }

    #[inline(always)]
    pub(crate) fn row(&self, index: usize) -> ArrayView1<'a, T> {
        match *self {
            Self::Array(array) => array.row(index),
            Self::Numbers { values, dim: (_, columns) } => {
                values[index * columns..(index + 1) * columns].into()
            }
        }
    }

    /// Some rows that follow each other; nothing if they do not lie in memory row by row.
    pub(crate) fn slice(&self, rows: std::ops::Range<usize>) -> Option<&'a [T]> {
        let (values, (_, columns)) = match *self {
            Self::Array(array) => (array.as_slice()?, array.dim()),
            Self::Numbers { values, dim } => (values, dim),
        };
        values.get(rows.start * columns..rows.end * columns)
    }
}

impl<'a, T> From<&'a Array2<T>> for Matrix<'a, T> {
    fn from(array: &'a Array2<T>) -> Self {
        Self::Array(array)
    }
}
