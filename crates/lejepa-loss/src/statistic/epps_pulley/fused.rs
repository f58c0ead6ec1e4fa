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

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::super::sliced::contiguous;
use super::unit_circle::{Complex, Frequency, LANES, Lanes};
use super::{EppsPulley, KNOTS_PER_BLOCK, Knot};

/// Slices that are projected together.
const SLICES_PER_BLOCK: usize = 128;

/// Samples that are projected together: with the slices a buffer of 256 KB, and few enough to be summed
/// in f32 (32 per lane) before they are added to the f64 total.
const SAMPLES_PER_BLOCK: usize = 32 * LANES;

/// Samples whose gradient one task computes.
const SAMPLES_PER_TASK: usize = 8 * LANES;

/// Deviations of the empirical from the normal characteristic function.
///
/// # Shapes
/// - `embeddings`: `(.., samples, dim)`, f32 on the CPU
/// - `directions`: `(dim, slices)`; constants, they get no gradient
/// - result: `(.., slices, 2 * knots)`, the real parts before the imaginary parts
pub(super) fn deviations(statistic: &EppsPulley, embeddings: &Tensor, directions: &Tensor) -> Result<Tensor> {
    let (dim, slices) = directions.dims2()?;
    let directions = directions.t()?.contiguous()?.flatten_all()?.to_vec1()?;
    let plan =
        Plan { directions, dim, slices, knots: statistic.knots.clone(), blocks: blocks(&statistic.knots) };
    embeddings.contiguous()?.apply_op1(Deviations(Arc::new(plan)))
}

struct Plan {
    /// `(slices, dim)`
    directions: Vec<f32>,
    dim: usize,
    slices: usize,
    knots: Vec<Knot>,
    blocks: Vec<KnotBlock>,
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
    knots: std::ops::Range<usize>,
}

fn blocks(knots: &[Knot]) -> Vec<KnotBlock> {
    let starts = (0..knots.len()).step_by(KNOTS_PER_BLOCK);
    let block = |start: usize| KnotBlock {
        step: Frequency::new(knots[0].t),
        first: Frequency::new(knots[start].t),
        starts_at_step: start == 0,
        knots: start..(start + KNOTS_PER_BLOCK).min(knots.len()),
    };
    starts.map(block).collect()
}

impl KnotBlock {
    /// `exp(i t x)` for the distance of knots and for the first knot.
    #[inline(always)]
    fn step_and_first(&self, x: &Lanes) -> (Complex, Complex) {
        let step = self.step.unit(x);
        (step, if self.starts_at_step { step } else { self.first.unit(x) })
    }
}

impl Plan {
    /// Projects samples on a block of slices: `(slices, samples)`, rows padded with zeros to whole lanes.
    fn project(&self, slices: std::ops::Range<usize>, samples: &[f32], projected: &mut Vec<Lanes>) -> usize {
        let (count, dim) = (samples.len() / self.dim, self.dim);
        let row = count.div_ceil(LANES);
        projected.clear();
        projected.resize(slices.len() * row, [0.; LANES]);
        let directions = &self.directions[slices.start * dim..slices.end * dim];
        let buffer = projected.as_flattened_mut();
        let all = MatMut::from_column_major_slice_mut(buffer, row * LANES, slices.len());
        matmul(
            all.subrows_mut(0, count),
            Accum::Replace,
            MatRef::from_row_major_slice(samples, count, dim),
            MatRef::from_column_major_slice(directions, dim, slices.len()),
            1.,
            Par::Seq,
        );
        row
    }
}

struct Deviations(Arc<Plan>);
struct Gradient(Arc<Plan>);

impl CustomOp1 for Deviations {
    fn name(&self) -> &'static str {
        "characteristic-function-deviations"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let plan = &*self.0;
        let embeddings = contiguous::<f32>(storage, layout)?;
        let [leading @ .., samples, dim] = layout.shape().dims() else {
            candle_core::bail!("a matrix is needed")
        };
        if *dim != plan.dim {
            candle_core::bail!("directions have {} dimensions, embeddings {dim}", plan.dim);
        }
        let per_slice = 2 * plan.knots.len();
        let views: usize = leading.iter().product();
        let mut result = vec![0f32; views * plan.slices * per_slice];
        let view_size = samples * dim;
        result.par_chunks_mut(plan.slices * per_slice).zip(embeddings.par_chunks(view_size)).for_each(
            |(result, view)| {
                result.par_chunks_mut(SLICES_PER_BLOCK * per_slice).enumerate().for_each_init(
                    Vec::new,
                    |projected, (block, result)| {
                        let start = block * SLICES_PER_BLOCK;
                        let slices = start..start + result.len() / per_slice;
                        let mut sums = vec![0f64; result.len()];
                        for samples in view.chunks(SAMPLES_PER_BLOCK * dim) {
                            let row = plan.project(slices.clone(), samples, projected);
                            let padding = row * LANES - samples.len() / dim;
                            pulp::Arch::new().dispatch(AddPowers {
                                plan,
                                projected,
                                row,
                                padding,
                                sums: &mut sums,
                            });
                        }
                        for (result, sums) in
                            result.chunks_exact_mut(per_slice).zip(sums.chunks_exact(per_slice))
                        {
                            for (index, (result, sum)) in result.iter_mut().zip(sums).enumerate() {
                                let target = plan.knots.get(index).map_or(0., |knot| knot.target);
                                *result = (sum / *samples as f64 - target) as f32;
                            }
                        }
                    },
                );
            },
        );
        let mut shape = leading.to_vec();
        shape.extend([plan.slices, per_slice]);
        Ok((CpuStorage::F32(result), Shape::from(shape)))
    }

    fn bwd(&self, embeddings: &Tensor, _result: &Tensor, upstream: &Tensor) -> Result<Option<Tensor>> {
        let upstream = upstream.detach().contiguous()?;
        Ok(Some(embeddings.detach().apply_op2_no_bwd(&upstream, &Gradient(self.0.clone()))?))
    }
}

/// Adds `cos(t x)` and `sin(t x)` of projected samples to the sums of their slice.
struct AddPowers<'a> {
    plan: &'a Plan,
    projected: &'a [Lanes],
    /// Groups of lanes per slice.
    row: usize,
    /// Zeros at the end of a row.
    padding: usize,
    /// Per slice all cosines, then all sines.
    sums: &'a mut [f64],
}

impl pulp::NullaryFnOnce for AddPowers<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let knots = self.plan.knots.len();
        let slices = self.projected.chunks_exact(self.row).zip(self.sums.chunks_exact_mut(2 * knots));
        for (samples, sums) in slices {
            let (cosines, sines) = sums.split_at_mut(knots);
            for block in &self.plan.blocks {
                let mut partial = [Complex { real: [0.; LANES], imaginary: [0.; LANES] }; KNOTS_PER_BLOCK];
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
                    cosines[index] += total(&sum.real) - self.padding as f64;
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

impl CustomOp2 for Gradient {
    fn name(&self) -> &'static str {
        "characteristic-function-deviations-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        upstream_storage: &CpuStorage,
        upstream_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let plan = &*self.0;
        let embeddings = contiguous::<f32>(storage, layout)?;
        let upstream = contiguous::<f32>(upstream_storage, upstream_layout)?;
        let (samples, dim) = match layout.shape().dims() {
            [.., samples, dim] => (*samples, *dim),
            _ => candle_core::bail!("a matrix is needed"),
        };
        let coefficients = plan.coefficients(upstream, samples);
        let mut result = vec![0f32; embeddings.len()];
        let view_size = samples * dim;
        let views = result.par_chunks_mut(view_size).zip(embeddings.par_chunks(view_size));
        views.zip(coefficients.par_chunks(plan.slices * plan.knots.len())).for_each(
            |((result, view), coefficients)| {
                let tasks = result
                    .par_chunks_mut(SAMPLES_PER_TASK * dim)
                    .zip(view.par_chunks(SAMPLES_PER_TASK * dim));
                tasks.for_each_init(Vec::new, |projected, (result, samples)| {
                    let blocks = coefficients.chunks(SLICES_PER_BLOCK * plan.knots.len()).enumerate();
                    for (block, coefficients) in blocks {
                        let start = block * SLICES_PER_BLOCK;
                        let slices = start..start + coefficients.len() / plan.knots.len();
                        let row = plan.project(slices.clone(), samples, projected);
                        pulp::Arch::new().dispatch(Derivatives { plan, projected, row, coefficients });
                        let count = samples.len() / dim;
                        let derivatives = MatRef::from_column_major_slice(
                            projected.as_flattened(),
                            row * LANES,
                            slices.len(),
                        );
                        matmul(
                            MatMut::from_row_major_slice_mut(result, count, dim),
                            Accum::Add,
                            derivatives.subrows(0, count),
                            MatRef::from_row_major_slice(
                                &plan.directions[slices.start * dim..slices.end * dim],
                                slices.len(),
                                dim,
                            ),
                            1.,
                            Par::Seq,
                        );
                    }
                });
            },
        );
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

impl Plan {
    /// Per view, slice and knot the complex `c` for which a projected sample's derivative is the real
    /// part of `sum c exp(i t x)`.
    fn coefficients(&self, upstream: &[f32], samples: usize) -> Vec<(f32, f32)> {
        let knots = self.knots.len();
        let slices = upstream.chunks_exact(2 * knots);
        let pairs = slices.flat_map(|upstream| upstream[..knots].iter().zip(&upstream[knots..]));
        let with_knots = pairs.zip(self.knots.iter().cycle());
        with_knots
            .map(|((&by_real, &by_imaginary), knot)| {
                let factor = (knot.t / samples as f64) as f32;
                (by_imaginary * factor, by_real * factor)
            })
            .collect()
    }
}

/// Replaces projected samples by the derivatives of the loss by them.
struct Derivatives<'a> {
    plan: &'a Plan,
    projected: &'a mut [Lanes],
    /// Groups of lanes per slice.
    row: usize,
    /// Per slice, then knot.
    coefficients: &'a [(f32, f32)],
}

impl pulp::NullaryFnOnce for Derivatives<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let knots = self.plan.knots.len();
        let slices = self.projected.chunks_exact_mut(self.row).zip(self.coefficients.chunks_exact(knots));
        for (samples, coefficients) in slices {
            for x in samples {
                let mut derivative = [0.; LANES];
                for block in &self.plan.blocks {
                    let (step, first) = block.step_and_first(x);
                    let mut sum = Complex { real: [0.; LANES], imaginary: [0.; LANES] };
                    for &(real, imaginary) in coefficients[block.knots.clone()].iter().rev() {
                        sum = sum.multiply_add(&step, real, imaginary);
                    }
                    let sum = sum.multiply(&first);
                    derivative.iter_mut().zip(&sum.real).for_each(|(derivative, term)| *derivative += term);
                }
                *x = derivative;
            }
        }
    }
}
