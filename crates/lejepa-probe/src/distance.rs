//! Squared distances as products (`tiles.rs`): how queries and a bank are laid out for it, how far rounding
//! can lead them astray, and the distances themselves where that matters.

use std::ops::RangeInclusive;

use ndarray::ArrayView1;
use rayon::prelude::*;

use crate::Result;
use crate::centred::{mean, mean_variance};
use crate::real::Real;
use crate::rows::Rows;
use crate::tiles::{Products, Visitor, visit_products};
use crate::watch::Watch;

/// Rounding of a product of two rows of length 1 in f32, with a margin; 2e-7 was measured for 384 numbers.
const SINGLE: f64 = 1e-6;
/// The same in f64.
const DOUBLE: f64 = 1e-14;
/// Squares that f32 holds with all parts of them that matter.
const SINGLE_RANGE: RangeInclusive<f64> = 1e-24..=1e36;
/// Bytes of the states of queries at the same time.
const STATES: usize = 256 << 20;

/// Distances from one set of features to others.
pub(crate) struct Distances<'a> {
    pub(crate) bank: Rows<'a>,
    pub(crate) queries: Rows<'a>,
    mean: Vec<f64>,
    /// The largest squared distance of a row from the mean, of either side.
    largest: f64,
    /// `|q|^2` of every query: `|q - x|^2 = |q|^2 - 2 product`
    pub(crate) squares: Vec<f64>,
}

impl<'a> Distances<'a> {
    pub(crate) fn new(bank: Rows<'a>, queries: Rows<'a>) -> Self {
        // Around the mean, products are as small as they can be and lose as little as they can.
        let mean = mean(bank);
        let of = |rows: Rows<'a>| (0..rows.len()).into_par_iter().map(move |row| rows.row(row));
        let squares: Vec<f64> = of(queries).map(|row| square(row, &mean)).collect();
        let largest = of(bank).map(|row| square(row, &mean)).reduce(|| 0., f64::max);
        let largest = squares.iter().copied().fold(largest, f64::max);
        Self { bank, queries, mean, largest, squares }
    }

    /// Whether f32 keeps half a squared distance within `error`. Squares outside of its range it does not keep at all.
    pub(crate) fn fit_single(&self, error: f64) -> bool {
        SINGLE_RANGE.contains(&self.largest) && SINGLE * self.largest <= error
    }

    /// By how much half a squared distance may be wrong.
    pub(crate) fn rounding<T: Real>(&self) -> f64 {
        let precision = if size_of::<T>() == size_of::<f32>() { SINGLE } else { DOUBLE };
        precision * self.largest
    }

    /// Visits the products, with states of so many bytes.
    pub(crate) fn visit<T: Real, V: Visitor<T>>(
        &self,
        (visitor, bytes): (&V, usize),
        watch: &mut Watch<'_>,
        finish: impl FnMut(usize, V::State),
    ) -> Result<()>
    where
        V::State: Send,
    {
        let products = Products {
            queries: self.queries,
            bank: self.bank,
            dim: self.bank.dim() + 1,
            write_query: &|row, to| self.write(row, |_| 1., to),
            write_bank: &|row, to| self.write(row, |square| -square / 2., to),
            states: STATES / bytes.max(1),
        };
        visit_products(&products, visitor, watch, finish)
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
        let (query, row) = (self.queries.row(query), self.bank.row(row));
        query.iter().zip(row).map(|(query, row)| (f64::from(*query) - f64::from(*row)).powi(2)).sum()
    }
}

/// The root of the mean squared distance between two samples: the unit of radii and bandwidths. 1 if all
/// samples are the same.
pub(crate) fn scale(features: Rows<'_>) -> f64 {
    // Twice the variance of all columns together.
    (2. * mean_variance(features) * features.dim() as f64).sqrt()
}

fn square(row: ArrayView1<'_, f32>, mean: &[f64]) -> f64 {
    row.iter().zip(mean).map(|(value, mean)| (f64::from(*value) - mean).powi(2)).sum()
}
