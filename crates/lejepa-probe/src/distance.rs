//! Squared distances as products (`tiles.rs`): how queries and a bank are laid out for it, how far rounding
//! can lead them astray, and the distances themselves where that matters.

use ndarray::{Array2, ArrayView1};
use rayon::prelude::*;

use crate::centred::mean;
use crate::panels::Panels;
use crate::real::Real;
use crate::tiles;

/// Rounding of a product of two rows of length 1 in f32, with a margin; 2e-7 was measured for 384 numbers.
const SINGLE: f64 = 1e-6;
/// The same in f64.
const DOUBLE: f64 = 1e-14;

/// Distances from one set of features to others.
pub(crate) struct Distances<'a> {
    pub(crate) bank: &'a Array2<f32>,
    pub(crate) queries: &'a Array2<f32>,
    mean: Vec<f64>,
    /// The largest squared distance of a row from the mean, of either side.
    largest: f64,
}

/// What products are made of.
pub(crate) struct Layout<T> {
    pub(crate) bank: Panels<T>,
    pub(crate) queries: Panels<T>,
    /// `|q|^2` of every query: `|q - x|^2 = |q|^2 - 2 product`
    pub(crate) squares: Vec<f64>,
    /// By how much half a squared distance may be wrong.
    pub(crate) rounding: f64,
}

impl<'a> Distances<'a> {
    pub(crate) fn new(bank: &'a Array2<f32>, queries: &'a Array2<f32>) -> Self {
        // Around the mean, products are as small as they can be and lose as little as they can.
        let mean = mean(bank);
        let rows = bank.outer_iter().into_par_iter().chain(queries.outer_iter());
        let largest = rows.map(|row| square(row, &mean)).reduce(|| 0., f64::max);
        Self { bank, queries, mean, largest }
    }

    /// Whether f32 keeps half a squared distance within `error`.
    pub(crate) fn fit_single(&self, error: f64) -> bool {
        SINGLE * self.largest <= error
    }

    pub(crate) fn layout<T: Real>(&self) -> Layout<T> {
        let precision = if size_of::<T>() == size_of::<f32>() { SINGLE } else { DOUBLE };
        let dim = self.bank.ncols() + 1;
        let squares = self.queries.outer_iter().into_par_iter().map(|row| square(row, &self.mean)).collect();
        Layout {
            bank: tiles::bank(self.bank, dim, |row, to| self.write(row, |square| -square / 2., to)),
            queries: tiles::queries(self.queries, dim, |row, to| self.write(row, |_| 1., to)),
            squares,
            rounding: precision * self.largest,
        }
    }

    /// A centred row with one more column, which its squared length decides.
    fn write<T: Real>(&self, row: ArrayView1<'_, f32>, last: impl Fn(f64) -> f64, to: &mut [T]) {
        let mut square = 0.;
        for ((to, value), mean) in to.iter_mut().zip(row).zip(&self.mean) {
            let centred = f64::from(*value) - mean;
            *to = T::rounded(centred);
            square += centred * centred;
        }
        to[row.len()] = T::rounded(last(square));
    }

    /// The squared distance itself.
    pub(crate) fn exact(&self, query: usize, row: usize) -> f64 {
        let pairs = self.queries.row(query).into_iter().zip(self.bank.row(row));
        pairs.map(|(query, row)| (f64::from(*query) - f64::from(*row)).powi(2)).sum()
    }
}

/// The root of the mean squared distance between two samples: the unit of radii and bandwidths. 1 if all
/// samples are the same.
pub(crate) fn scale(features: &Array2<f32>) -> f64 {
    let mean = mean(features);
    let total: f64 = features.outer_iter().into_par_iter().map(|row| square(row, &mean)).sum();
    match (2. * total / features.nrows().max(1) as f64).sqrt() {
        scale if scale > 0. => scale,
        _ => 1.,
    }
}

fn square(row: ArrayView1<'_, f32>, mean: &[f64]) -> f64 {
    row.iter().zip(mean).map(|(value, mean)| (f64::from(*value) - mean).powi(2)).sum()
}
