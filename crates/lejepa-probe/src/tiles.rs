//! Products of every query with every row of a bank, tile by tile.
//!
//! ```text
//! cosine     q . x / |q| |x|                         rows of unit length
//! distance   |q - x|^2 = |q|^2 - 2 (q . x - |x|^2 / 2)     a bank with a column -|x|^2 / 2, queries with a 1
//! ```
//!
//! Either way the nearest row has the largest product. A tile stays in a core's cache, so that memory grows
//! neither with the number of queries nor with the size of the bank.

use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::exponential::exponential;

/// Queries that one thread works on at a time.
const QUERIES: usize = 128;
/// Rows of the bank that they are multiplied with at a time.
const BANK: usize = 1024;

/// The numbers that products are computed in.
pub(crate) trait Real: ComplexField + Copy + PartialOrd + Into<f64> + Send + Sync {
    const LOWEST: Self;
    fn rounded(value: f64) -> Self;
    /// `exp((product - largest) scale)`, which is not above 1.
    fn weight(product: Self, largest: Self, scale: Self) -> Self;
}

impl Real for f32 {
    const LOWEST: Self = Self::NEG_INFINITY;
    fn rounded(value: f64) -> Self {
        value as Self
    }
    fn weight(product: Self, largest: Self, scale: Self) -> Self {
        exponential((product - largest) * scale)
    }
}

impl Real for f64 {
    const LOWEST: Self = Self::NEG_INFINITY;
    fn rounded(value: f64) -> Self {
        value
    }
    fn weight(product: Self, largest: Self, scale: Self) -> Self {
        ((product - largest) * scale).exp()
    }
}

/// Rows of equal length, one after the other.
pub(crate) struct Rows<T> {
    pub(crate) values: Vec<T>,
    /// At least 1.
    pub(crate) dim: usize,
}

/// What happens to the products of one query.
pub(crate) trait Visitor<T>: Sync {
    /// What is known of a query so far.
    type State;
    fn start(&self, query: usize) -> Self::State;
    /// Products with the rows of the bank from `first` on.
    fn visit(&self, state: &mut Self::State, first: usize, products: &[T]);
}

/// The state of every query after all products, in order.
pub(crate) fn visit_products<T: Real, V: Visitor<T>>(
    queries: &Rows<T>,
    bank: &Rows<T>,
    visitor: &V,
) -> Vec<V::State>
where
    V::State: Send,
{
    let dim = bank.dim;
    let blocks = queries.values.par_chunks(QUERIES * dim).enumerate();
    let states = blocks.flat_map_iter(|(block, rows)| {
        let count = rows.len() / dim;
        let rows = MatRef::from_column_major_slice(rows, dim, count);
        let mut states: Vec<V::State> =
            (0..count).map(|query| visitor.start(block * QUERIES + query)).collect();
        let mut tile = vec![T::rounded(0.); count * BANK];
        for (index, bank) in bank.values.chunks(BANK * dim).enumerate() {
            let height = bank.len() / dim;
            let tile = &mut tile[..count * height];
            let bank = MatRef::from_row_major_slice(bank, height, dim);
            // One column per query: its products lie side by side in memory.
            let products = MatMut::from_column_major_slice_mut(tile, height, count);
            matmul(products, Accum::Replace, bank, rows, T::rounded(1.), Par::Seq);
            for (state, products) in states.iter_mut().zip(tile.chunks_exact(height)) {
                visitor.visit(state, index * BANK, products);
            }
        }
        states
    });
    states.collect()
}
