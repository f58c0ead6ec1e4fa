//! `ecf(t) - exp(-t^2/2)` of every slice at every knot, straight from the embeddings.
//!
//! Neither the projections nor anything per sample and knot is kept: a block of slices is projected,
//! turned into sums and forgotten; the backward pass projects again. Memory is that of the embeddings.
//! Each projected sample costs one sine and cosine, `z = exp(i t_1 x)`; the other knots are its powers.
//! Backward, a sample's derivative is a polynomial in `z` (Horner's rule). Multiplying by numbers on the
//! unit circle adds rounding errors but never magnifies them, and after [`KNOTS_PER_BLOCK`] of them
//! the power is computed afresh.
//!
//! The result does not depend on the number of threads.

mod backward;
mod forward;
mod unit_circle;

use std::ops::Range;
use std::sync::Arc;

use candle_core::{Result, Tensor};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::{EppsPulley, KNOTS_PER_BLOCK, Knot};
use unit_circle::{Complex, Frequency, LANES, Lanes};

/// Slices that are projected together.
const SLICES_PER_BLOCK: usize = 128;

/// Deviations of the empirical from the normal characteristic function.
///
/// # Shapes
/// - `embeddings`: `(.., samples, dim)`, f32 on the CPU, nothing of it 0
/// - `directions`: `(dim, slices)`; constants, they get no gradient
/// - result: `(.., slices, 2 * knots)`, the real parts before the imaginary parts
pub(super) fn deviations(statistic: &EppsPulley, embeddings: &Tensor, directions: &Tensor) -> Result<Tensor> {
    let (dim, slices) = directions.dims2()?;
    let directions = directions.t()?.contiguous()?.flatten_all()?.to_vec1()?;
    let (knots, blocks) = (statistic.knots.clone(), KnotBlock::all(&statistic.knots));
    let plan = Plan { directions, dim, slices, knots, blocks };
    embeddings.contiguous()?.apply_op1(forward::Deviations(Arc::new(plan)))
}

/// What both passes work with.
struct Plan {
    /// `(slices, dim)`
    directions: Vec<f32>,
    dim: usize,
    slices: usize,
    knots: Vec<Knot>,
    blocks: Vec<KnotBlock>,
}

/// A block of slices of some samples: `(slices, samples)`, every row padded with zeros to whole lanes.
#[derive(Default)]
struct Projected {
    values: Vec<Lanes>,
    /// Groups of lanes per slice.
    row: usize,
    /// Samples per slice, without the padding.
    samples: usize,
}

impl Plan {
    /// Projects samples on a block of slices.
    fn project(&self, slices: &Range<usize>, samples: &[f32], projected: &mut Projected) {
        let count = samples.len() / self.dim;
        projected.samples = count;
        projected.row = count.div_ceil(LANES);
        projected.values.clear();
        projected.values.resize(slices.len() * projected.row, [0.; LANES]);
        let buffer = projected.values.as_flattened_mut();
        let rows = MatMut::from_column_major_slice_mut(buffer, projected.row * LANES, slices.len());
        matmul(
            rows.subrows_mut(0, count),
            Accum::Replace,
            MatRef::from_row_major_slice(samples, count, self.dim),
            self.directions(slices).transpose(),
            1.,
            Par::Seq,
        );
    }

    /// The directions of a block of slices: `(slices, dim)`.
    fn directions(&self, slices: &Range<usize>) -> MatRef<'_, f32> {
        let rows = &self.directions[slices.start * self.dim..slices.end * self.dim];
        MatRef::from_row_major_slice(rows, slices.len(), self.dim)
    }
}

/// Knots whose powers follow from one another.
struct KnotBlock {
    /// The distance of two knots.
    step: Frequency,
    /// The first knot.
    first: Frequency,
    /// Whether the first knot is the distance itself.
    starts_at_step: bool,
    /// Where its knots stand among all.
    knots: Range<usize>,
}

impl KnotBlock {
    fn all(knots: &[Knot]) -> Vec<Self> {
        let block = |start: usize| Self {
            step: Frequency::new(knots[0].t),
            first: Frequency::new(knots[start].t),
            starts_at_step: start == 0,
            knots: start..(start + KNOTS_PER_BLOCK).min(knots.len()),
        };
        (0..knots.len()).step_by(KNOTS_PER_BLOCK).map(block).collect()
    }

    /// `exp(i t x)` for the distance of knots and for the first knot.
    #[inline(always)]
    fn step_and_first(&self, x: &Lanes) -> (Complex, Complex) {
        let step = self.step.unit(x);
        (step, if self.starts_at_step { step } else { self.first.unit(x) })
    }
}
