//! Products of every query with every row of a bank, tile by tile.
//!
//! ```text
//! cosine     q . x / |q| |x|                         rows of unit length
//! distance   |q - x|^2 = |q|^2 - 2 (q . x - |x|^2 / 2)     a bank with a column -|x|^2 / 2, queries with a 1
//! ```
//!
//! Either way the nearest row has the largest product. A tile stays in a core's cache, so that memory grows
//! neither with the number of queries nor with the size of the bank.

use std::marker::PhantomData;

use ndarray::{Array2, ArrayView1};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::panels::Panels;
use crate::real::Real;

/// Queries whose products stay in registers, with [`VECTORS`] vectors of the bank each.
const GROUP: usize = 6;
/// Vectors of a processor that a panel of the bank is wide.
const VECTORS: usize = 2;
/// Numbers of a row at most that are multiplied before the next rows are: a panel's stay in the first cache.
const DEPTH: usize = 400;
/// Queries that one thread works on at a time, which stay in the second.
const QUERIES: usize = 16 * GROUP;
/// Rows of the bank at least whose products with them are computed before they are looked at.
const BANK: usize = 256;

/// Queries for [`visit_products`]: `write` is given every row and room for `dim` numbers.
pub(crate) fn queries<T: Real>(
    features: &Array2<f32>,
    dim: usize,
    write: impl Fn(ArrayView1<'_, f32>, &mut [T]) + Sync,
) -> Panels<T> {
    Panels::new(features, dim, GROUP, write)
}

/// A bank for [`visit_products`]: `write` is given every row and room for `dim` numbers.
pub(crate) fn bank<T: Real>(
    features: &Array2<f32>,
    dim: usize,
    write: impl Fn(ArrayView1<'_, f32>, &mut [T]) + Sync,
) -> Panels<T> {
    Panels::new(features, dim, Arch::new().dispatch(Width::<T>(PhantomData)), write)
}

/// Finds how wide the bank's panels are on this processor.
struct Width<T>(PhantomData<T>);

impl<T: Real> WithSimd for Width<T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        width::<T, S>()
    }
}

fn width<T: Real, S: Simd>() -> usize {
    VECTORS * size_of::<T::Vector<S>>() / size_of::<T>()
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
    queries: &Panels<T>,
    bank: &Panels<T>,
    visitor: &V,
) -> Vec<V::State>
where
    V::State: Send,
{
    let blocks = queries.values.par_chunks(QUERIES * queries.dim).enumerate();
    let states = blocks.flat_map_iter(|(block, groups)| {
        let first = block * QUERIES;
        let count = QUERIES.min(queries.rows - first);
        let mut states: Vec<V::State> = (first..first + count).map(|query| visitor.start(query)).collect();
        Arch::new().dispatch(Block { groups, bank, visitor, states: &mut states });
        states
    });
    states.collect()
}

/// Some queries, with the whole bank.
struct Block<'a, T, V: Visitor<T>> {
    /// Panels of queries.
    groups: &'a [T],
    bank: &'a Panels<T>,
    visitor: &'a V,
    states: &'a mut [V::State],
}

impl<T: Real, V: Visitor<T>> WithSimd for Block<'_, T, V> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Panels { ref values, width, rows, dim } = *self.bank;
        let height = BANK.next_multiple_of(width);
        let queries = self.groups.len() / dim;
        let mut tile = vec![T::rounded(0.); queries * height]; // (queries, rows of the bank)
        let depth = dim.div_ceil(dim.div_ceil(DEPTH));
        for (panels, first) in values.chunks(height * dim).zip((0..).step_by(height)) {
            tile.fill(T::rounded(0.));
            for from in (0..dim).step_by(depth) {
                let part = from..dim.min(from + depth);
                for (panel, column) in panels.chunks_exact(width * dim).zip((0..).step_by(width)) {
                    let panel = &panel[width * part.start..width * part.end];
                    let tiles = tile.chunks_exact_mut(GROUP * height);
                    for (group, tile) in self.groups.chunks_exact(GROUP * dim).zip(tiles) {
                        let group = &group[GROUP * part.start..GROUP * part.end];
                        let sums = products::<T, S>(simd, panel, group);
                        for (sums, tile) in sums.iter().zip(tile.chunks_exact_mut(height)) {
                            let tile = T::vectors_mut::<S>(&mut tile[column..column + width]);
                            tile.iter_mut().zip(sums).for_each(|(to, sum)| *to = T::add(simd, *to, *sum));
                        }
                    }
                }
            }
            let meant = height.min(rows - first);
            for (state, products) in self.states.iter_mut().zip(tile.chunks_exact(height)) {
                self.visitor.visit(state, first, &products[..meant]);
            }
        }
    }
}

/// Of a group of queries with a panel of the bank.
#[inline(always)]
fn products<T: Real, S: Simd>(simd: S, panel: &[T], group: &[T]) -> [[T::Vector<S>; VECTORS]; GROUP] {
    let mut sums = [[T::splat(simd, T::rounded(0.)); VECTORS]; GROUP];
    let (panel, _) = T::vectors::<S>(panel).as_chunks::<VECTORS>();
    let (group, _) = group.as_chunks::<GROUP>();
    for (rows, queries) in panel.iter().zip(group) {
        for (sums, query) in sums.iter_mut().zip(queries) {
            let query = T::splat(simd, *query);
            for (sum, rows) in sums.iter_mut().zip(rows) {
                *sum = T::multiply_add(simd, *rows, query, *sum);
            }
        }
    }
    sums
}
