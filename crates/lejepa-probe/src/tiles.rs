//! Products of every query with every row of a bank, tile by tile.
//!
//! ```text
//! cosine     q . x / |q| |x|                         rows of unit length
//! distance   |q - x|^2 = |q|^2 - 2 (q . x - |x|^2 / 2)     a bank with a column -|x|^2 / 2, queries with a 1
//! ```
//!
//! Either way the nearest row has the largest product. A tile stays in a core's cache, and the bank is laid out
//! for them a chunk at a time, so that memory grows neither with the number of queries nor with the bank.

use std::marker::PhantomData;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::Result;
use crate::panels::{Panels, Write};
use crate::real::Real;
use crate::rows::Rows;
use crate::watch::Watch;

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
/// Bytes of the bank that are laid out at a time, about.
const CHUNK: usize = 64 << 20;
/// Blocks of queries of every thread between two looks at the watch: some tenths of a second.
const TURN: usize = 4;

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

/// Queries, a bank, and how both are written for their products.
pub(crate) struct Products<'a, T> {
    pub(crate) queries: Rows<'a>,
    pub(crate) bank: Rows<'a>,
    /// Numbers of a row, as it is written.
    pub(crate) dim: usize,
    pub(crate) write_query: &'a Write<'a, T>,
    pub(crate) write_bank: &'a Write<'a, T>,
    /// Queries whose states are kept at the same time.
    pub(crate) states: usize,
}

/// Gives `finish` the state of every query after all products, in order.
pub(crate) fn visit_products<T: Real, V: Visitor<T>>(
    products: &Products<'_, T>,
    visitor: &V,
    watch: &mut Watch<'_>,
    mut finish: impl FnMut(usize, V::State),
) -> Result<()>
where
    V::State: Send,
{
    let Products { queries, bank, dim, .. } = *products;
    let width = Arch::new().dispatch(Width::<T>(PhantomData));
    let rows = (CHUNK / (dim * size_of::<T>())).max(1).next_multiple_of(BANK.next_multiple_of(width));
    let turn = TURN * rayon::current_num_threads().max(1) * QUERIES;
    let pairs = (queries.len() as f64 * bank.len() as f64).max(1.);
    let mut done = 0.;
    for (first, part) in queries.blocks(products.states.max(QUERIES)) {
        let panels = Panels::new(part, dim, GROUP, products.write_query);
        let mut states: Vec<V::State> =
            (first..first + part.len()).map(|query| visitor.start(query)).collect();
        for (first, chunk) in bank.blocks(rows) {
            let bank = Panels::new(chunk, dim, width, products.write_bank);
            for (states, groups) in states.chunks_mut(turn).zip(panels.values.chunks(turn * dim)) {
                watch.at(done / pairs)?;
                let blocks = states.par_chunks_mut(QUERIES).zip(groups.par_chunks(QUERIES * dim));
                blocks.for_each(|(states, groups)| {
                    Arch::new().dispatch(Block { groups, bank: &bank, first, visitor, states });
                });
                done += states.len() as f64 * chunk.len() as f64;
            }
        }
        states.into_iter().zip(first..).for_each(|(state, query)| finish(query, state));
    }
    Ok(())
}

/// Some queries, with a chunk of the bank.
struct Block<'a, T, V: Visitor<T>> {
    /// Panels of queries.
    groups: &'a [T],
    bank: &'a Panels<T>,
    /// The chunk's first row.
    first: usize,
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
                self.visitor.visit(state, self.first + first, &products[..meant]);
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
