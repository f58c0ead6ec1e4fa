//! From embeddings to deviations, one task per block of slices.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::unit_circle::{Complex, LANES, Lanes};
use super::{KNOTS_PER_BLOCK, Plan, Projected, SLICES_PER_BLOCK, backward};
use crate::statistic::sliced::contiguous;

/// Samples that are projected together: with the slices a buffer of 256 KB, and few enough to be summed
/// in f32 (32 per lane) before they are added to the f64 total.
const SAMPLES_PER_BLOCK: usize = 32 * LANES;

pub(super) struct Deviations(pub(super) Arc<Plan>);

impl CustomOp1 for Deviations {
    fn name(&self) -> &'static str {
        "characteristic-function-deviations"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let plan = &*self.0;
        let embeddings = contiguous::<f32>(storage, layout)?;
        let dims = layout.shape().dims();
        let leading = &dims[..dims.len() - 2];
        let view_size = dims[dims.len() - 2] * plan.dim;
        let per_slice = 2 * plan.knots.len();
        let mut shape = leading.to_vec();
        shape.extend([plan.slices, per_slice]);
        let shape = Shape::from(shape);

        let mut result = vec![0f32; shape.elem_count()];
        let views = result.par_chunks_mut(plan.slices * per_slice).zip(embeddings.par_chunks(view_size));
        views.for_each(|(result, view)| {
            let blocks = result.par_chunks_mut(SLICES_PER_BLOCK * per_slice).enumerate();
            blocks.for_each_init(Projected::default, |projected, (block, result)| {
                let start = block * SLICES_PER_BLOCK;
                plan.deviations(view, start..start + result.len() / per_slice, projected, result);
            });
        });
        Ok((CpuStorage::F32(result), shape))
    }

    fn bwd(&self, embeddings: &Tensor, _result: &Tensor, upstream: &Tensor) -> Result<Option<Tensor>> {
        let upstream = upstream.detach().contiguous()?;
        let gradient = backward::Gradient(self.0.clone());
        Ok(Some(embeddings.detach().apply_op2_no_bwd(&upstream, &gradient)?))
    }
}

impl Plan {
    /// The deviations of a block of slices of a view.
    fn deviations(&self, view: &[f32], slices: Range<usize>, projected: &mut Projected, result: &mut [f32]) {
        let mut sums = vec![0f64; result.len()];
        for samples in view.chunks(SAMPLES_PER_BLOCK * self.dim) {
            self.project(&slices, samples, projected);
            pulp::Arch::new().dispatch(AddPowers { plan: self, projected, sums: &mut sums });
        }
        let samples = (view.len() / self.dim) as f64;
        let targets = self.knots.iter().map(|knot| knot.target);
        let of_slice = targets.chain(self.knots.iter().map(|_knot| 0.));
        for ((result, sum), target) in result.iter_mut().zip(sums).zip(of_slice.cycle()) {
            *result = (sum / samples - target) as f32;
        }
    }
}

/// Adds `cos(t x)` and `sin(t x)` of projected samples to the sums of their slice.
struct AddPowers<'a> {
    plan: &'a Plan,
    projected: &'a Projected,
    /// Per slice all cosines, then all sines.
    sums: &'a mut [f64],
}

impl pulp::NullaryFnOnce for AddPowers<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Projected { values, row, samples } = self.projected;
        let padding = (row * LANES - samples) as f64;
        let knots = self.plan.knots.len();
        for (samples, sums) in values.chunks_exact(*row).zip(self.sums.chunks_exact_mut(2 * knots)) {
            let (cosines, sines) = sums.split_at_mut(knots);
            for block in &self.plan.blocks {
                let mut partial = [Complex::ZERO; KNOTS_PER_BLOCK];
                let partial = &mut partial[..block.knots.len()];
                for x in samples {
                    let (step, mut power) = block.step_and_first(x);
                    for sum in partial.iter_mut() {
                        sum.add(&power);
                        power = power.multiply(&step);
                    }
                }
                for (index, sum) in block.knots.clone().zip(partial) {
                    // A padded sample is 0, and its cosine exactly 1.
                    cosines[index] += total(&sum.real) - padding;
                    sines[index] += total(&sum.imaginary);
                }
            }
        }
    }
}

#[inline(always)]
fn total(lanes: &Lanes) -> f64 {
    lanes.iter().map(|&lane| f64::from(lane)).sum()
}
