//! From the derivatives by deviations to those by embeddings, one task per block of samples.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::unit_circle::{Complex, LANES};
use super::{Plan, Projected, SLICES_PER_BLOCK};
use crate::statistic::sliced::contiguous;

/// Samples whose gradient one task computes.
const SAMPLES_PER_TASK: usize = 8 * LANES;

/// Real and imaginary part of a knot's coefficient.
type Coefficient = (f32, f32);

pub(super) struct Gradient(pub(super) Arc<Plan>);

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
        let dims = layout.shape().dims();
        let samples = dims[dims.len() - 2];
        let (view_size, task_size) = (samples * plan.dim, SAMPLES_PER_TASK * plan.dim);
        let coefficients = plan.coefficients(upstream, samples);

        let mut result = vec![0f32; embeddings.len()];
        let views = result.par_chunks_mut(view_size).zip(embeddings.par_chunks(view_size));
        let views = views.zip(coefficients.par_chunks(plan.slices * plan.knots.len()));
        views.for_each(|((result, view), coefficients)| {
            let tasks = result.par_chunks_mut(task_size).zip(view.par_chunks(task_size));
            tasks.for_each_init(Projected::default, |projected, (result, samples)| {
                plan.gradient(samples, coefficients, projected, result);
            });
        });
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

impl Plan {
    /// Per view, slice and knot the complex `c` for which a projected sample's derivative is the real
    /// part of `sum c exp(i t x)`.
    fn coefficients(&self, upstream: &[f32], samples: usize) -> Vec<Coefficient> {
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

    /// Adds up the gradient of some samples over all slices.
    fn gradient(
        &self,
        samples: &[f32],
        coefficients: &[Coefficient],
        projected: &mut Projected,
        result: &mut [f32],
    ) {
        let blocks = coefficients.chunks(SLICES_PER_BLOCK * self.knots.len()).enumerate();
        for (block, coefficients) in blocks {
            let start = block * SLICES_PER_BLOCK;
            let slices = start..start + coefficients.len() / self.knots.len();
            self.project(&slices, samples, projected);
            pulp::Arch::new().dispatch(Derivatives { plan: self, projected, coefficients });
            let derivatives = projected.values.as_flattened();
            let rows = MatRef::from_column_major_slice(derivatives, projected.row * LANES, slices.len());
            matmul(
                MatMut::from_row_major_slice_mut(result, projected.samples, self.dim),
                Accum::Add,
                rows.subrows(0, projected.samples),
                self.directions(&slices),
                1.,
                Par::Seq,
            );
        }
    }
}

/// Replaces projected samples by the derivatives of the loss by them.
struct Derivatives<'a> {
    plan: &'a Plan,
    projected: &'a mut Projected,
    /// Per slice, then knot.
    coefficients: &'a [Coefficient],
}

impl pulp::NullaryFnOnce for Derivatives<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let slices = self.projected.values.chunks_exact_mut(self.projected.row);
        for (samples, coefficients) in slices.zip(self.coefficients.chunks_exact(self.plan.knots.len())) {
            for x in samples {
                let mut derivative = [0.; LANES];
                for block in &self.plan.blocks {
                    let (step, first) = block.step_and_first(x);
                    let mut sum = Complex::ZERO;
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
