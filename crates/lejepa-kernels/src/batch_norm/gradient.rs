//! The backward pass.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::super::contiguous::values;
use super::super::filled::filled;
use super::super::wide::wide;
use super::super::{ROWS_PER_TASK, add_up};
use super::columns::Columns;

/// Of rows before they were normalised, and of weight and bias: `(2, dim)`.
pub(super) fn gradients(columns: &Arc<Columns>, xs: &Tensor, gradient: &Tensor) -> Result<(Tensor, Tensor)> {
    let of_affine = xs.apply_op2_no_bwd(gradient, &AffineGradient(columns.clone()))?; // (2, dim)
    let (of_weight, of_bias) = (of_affine.get(0)?.to_vec1()?, of_affine.get(1)?.to_vec1()?);
    let input = InputGradient { columns: columns.clone(), of_weight, of_bias };
    Ok((xs.apply_op2_no_bwd(gradient, &input)?, of_affine))
}

/// The gradients of weight and bias, one after the other.
struct AffineGradient(Arc<Columns>);

impl CustomOp2 for AffineGradient {
    fn name(&self) -> &'static str {
        "batch-norm-affine-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let gradients = values(gradient_storage, gradient_layout)?;
        let dim = self.0.mean.len();
        let chunk = dim * ROWS_PER_TASK;
        // Collected in order and added up by one thread: the same sum for any number of threads.
        let partial_sums: Vec<Vec<f32>> = xs
            .par_chunks(chunk)
            .zip(gradients.par_chunks(chunk))
            .map(|(xs, gradients)| {
                let mut sums = vec![0.; 2 * dim];
                let (of_weight, of_bias) = sums.split_at_mut(dim);
                wide(
                    #[inline(always)]
                    || {
                        for (xs, gradients) in xs.chunks_exact(dim).zip(gradients.chunks_exact(dim)) {
                            let sums = of_weight.iter_mut().zip(of_bias.iter_mut());
                            for ((of_weight, of_bias), (normalised, gradient)) in
                                sums.zip(self.0.row(xs, gradients))
                            {
                                *of_weight += gradient * normalised;
                                *of_bias += gradient;
                            }
                        }
                    },
                );
                sums
            })
            .collect();
        Ok((CpuStorage::F32(add_up(&partial_sums, 2 * dim)), Shape::from((2, dim))))
    }
}

struct InputGradient {
    columns: Arc<Columns>,
    of_weight: Vec<f32>,
    of_bias: Vec<f32>,
}

impl CustomOp2 for InputGradient {
    fn name(&self) -> &'static str {
        "batch-norm-input-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let gradients = values(gradient_storage, gradient_layout)?;
        let dim = self.columns.mean.len();
        let share = dim as f32 / xs.len() as f32;
        let factor: Vec<f32> = self
            .columns
            .scale
            .iter()
            .zip(&self.columns.weight)
            .map(|(scale, weight)| scale * weight)
            .collect();
        let chunk = dim * ROWS_PER_TASK;
        let result = filled(xs.len(), chunk, |index, result| {
            let (xs, gradients) = (&xs[index * chunk..], &gradients[index * chunk..]);
            wide(
                #[inline(always)]
                || {
                    let rows = xs.chunks_exact(dim).zip(gradients.chunks_exact(dim));
                    for (result, (xs, gradients)) in result.chunks_exact_mut(dim).zip(rows) {
                        let columns = factor.iter().zip(&self.of_weight).zip(&self.of_bias);
                        let values = columns.zip(self.columns.row(xs, gradients));
                        for (result, (((factor, of_weight), of_bias), (normalised, gradient))) in
                            result.iter_mut().zip(values)
                        {
                            *result = factor * (gradient - share * (of_bias + normalised * of_weight));
                        }
                    }
                },
            );
        });
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}
