//! The sum over taps and channels for every target place: rows of maps, read where they lie, with panels of a kernel.

use pulp::{Arch, Simd, WithSimd};

use super::panels::{Panels, VECTORS};
use super::reach::{Reach, Reaches};
use crate::filled::filled;

/// Target places that a thread works on at a time: enough to read a panel of a kernel often while it is in the cache.
const PLACES: usize = 512;
/// Rather fewer than that, if there are not enough to share.
const FEW_PLACES: usize = 64;

/// Maps to be convolved.
pub(super) struct Sources<'a> {
    pub(super) maps: &'a [f32],
    pub(super) images: usize,
    pub(super) reaches: &'a Reaches,
}

impl Sources<'_> {
    /// # Shapes
    /// - result: `(images * target places, targets)`
    pub(super) fn multiply(&self, panels: &Panels) -> Vec<f32> {
        let size = self.reaches.target;
        let places = self.images * size.height * size.width;
        let at_a_time = (places / 4).clamp(FEW_PLACES, PLACES);
        let lines = (at_a_time / size.width.max(1)).max(1);
        filled(places * panels.targets, lines * size.width * panels.targets, |band, targets| {
            Arch::new().dispatch(Band { sources: self, panels, first_line: band * lines, targets });
        })
    }
}

/// Some lines of the target maps.
struct Band<'a> {
    sources: &'a Sources<'a>,
    panels: &'a Panels,
    /// Lines of all images are numbered through.
    first_line: usize,
    targets: &'a mut [f32],
}

/// Where the values of a place begin.
#[derive(Clone, Copy, Default)]
struct Place {
    source: usize,
    target: usize,
}

/// Places that the same taps meet.
#[derive(Clone)]
struct Kind {
    row: Reach,
    column: Reach,
    places: Vec<Place>,
}

impl Band<'_> {
    fn kinds(&self) -> Vec<Kind> {
        let Reaches { source, target, rows, columns, .. } = self.sources.reaches;
        let (depth, width) = (self.panels.depth, self.panels.targets);
        let column_kinds = Reaches::kinds(columns);
        let mut kinds: Vec<Option<Kind>> = vec![None; Reaches::kinds(rows) * column_kinds];
        let lines = self.targets.len() / (target.width * width).max(1);
        for line in 0..lines {
            let (image, y) =
                ((self.first_line + line) / target.height, (self.first_line + line) % target.height);
            let row = rows[y];
            for (x, &column) in columns.iter().enumerate() {
                let kind = kinds[row.kind * column_kinds + column.kind].get_or_insert_with(|| Kind {
                    row,
                    column,
                    places: Vec::new(),
                });
                kind.places.push(Place {
                    source: ((image * source.height + row.source) * source.width + column.source) * depth,
                    target: (line * target.width + x) * width,
                });
            }
        }
        kinds.into_iter().flatten().collect()
    }
}

impl WithSimd for Band<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let kinds = self.kinds();
        let Panels { ref values, width, targets, .. } = *self.panels;
        for (panel, first) in values.chunks_exact(self.panels.length()).zip((0..).step_by(width)) {
            let meant = width.min(targets - first);
            let (panel, _) = S::as_simd_f32s(panel).0.as_chunks::<VECTORS>();
            for kind in &kinds {
                // What is summed has to fit in registers, with a panel's vectors and one more.
                for places in kind.places.chunks(if S::REGISTER_COUNT >= 32 { 8 } else { 6 }) {
                    let block =
                        Block { sources: self.sources, depth: self.panels.depth, kind, panel, places };
                    let targets = Targets { values: self.targets, first, meant };
                    if meant > S::F32_LANES {
                        block.multiply::<VECTORS>(simd, targets);
                    } else {
                        block.multiply::<1>(simd, targets);
                    }
                }
            }
        }
    }
}

/// A few places of a kind.
struct Block<'a, V> {
    sources: &'a Sources<'a>,
    depth: usize,
    kind: &'a Kind,
    panel: &'a [[V; VECTORS]],
    places: &'a [Place],
}

/// The columns of the result that a panel makes.
struct Targets<'a> {
    values: &'a mut [f32],
    first: usize,
    meant: usize,
}

impl<V: Copy> Block<'_, V> {
    #[inline(always)]
    fn multiply<const N: usize>(&self, simd: impl Simd<f32s = V>, targets: Targets<'_>) {
        match self.places.len() {
            1 => self.multiply_places::<_, N, 1>(simd, targets),
            2 => self.multiply_places::<_, N, 2>(simd, targets),
            3 => self.multiply_places::<_, N, 3>(simd, targets),
            4 => self.multiply_places::<_, N, 4>(simd, targets),
            5 => self.multiply_places::<_, N, 5>(simd, targets),
            6 => self.multiply_places::<_, N, 6>(simd, targets),
            7 => self.multiply_places::<_, N, 7>(simd, targets),
            _ => self.multiply_places::<_, N, 8>(simd, targets),
        }
    }

    /// `N` vectors of a panel with `P` places.
    #[inline(always)]
    fn multiply_places<S: Simd<f32s = V>, const N: usize, const P: usize>(
        &self,
        simd: S,
        targets: Targets<'_>,
    ) {
        let Some(places) = self.places.first_chunk::<P>() else { return };
        let Kind { row, column, .. } = *self.kind;
        let Reaches { source, ref taps, .. } = *self.sources.reaches;
        let length = column.count * self.depth;
        let mut sums = [[simd.splat_f32s(0.); N]; P];
        for tap in 0..row.count {
            let panel = &self.panel[((row.tap + tap) * taps.len() + column.tap) * self.depth..][..length];
            let line = tap * source.width * self.depth;
            let rows = places.map(|place| &self.sources.maps[place.source + line..][..length]);
            sums = add_products(simd, sums, rows, panel);
        }
        for (sums, place) in sums.iter().zip(places) {
            let to = &mut targets.values[place.target + targets.first..][..targets.meant];
            for (to, sum) in to.chunks_mut(S::F32_LANES).zip(sums) {
                simd.partial_store_f32s(to, *sum);
            }
        }
    }
}

/// Adds the products of rows with a part of a panel; sums that are given and returned stay in registers.
// Indices, for iterators over both would leave the sums in memory.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn add_products<S: Simd, const N: usize, const P: usize>(
    simd: S,
    mut sums: [[S::f32s; N]; P],
    rows: [&[f32]; P],
    panel: &[[S::f32s; VECTORS]],
) -> [[S::f32s; N]; P] {
    let rows = rows.map(|row| &row[..panel.len()]);
    for (index, weights) in panel.iter().enumerate() {
        for place in 0..P {
            let value = simd.splat_f32s(rows[place][index]);
            for vector in 0..N {
                sums[place][vector] = simd.mul_add_e_f32s(weights[vector], value, sums[place][vector]);
            }
        }
    }
    sums
}
