//! `y = x + bias` for every row, with the bias' gradient summed on all cores.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;
use super::filled::filled;

/// # Shapes
/// - `xs` and result: `(rows, dim)`; `bias`: `(dim)`
pub fn add_bias(xs: &Tensor, bias: &Tensor) -> Result<Tensor> {
    if super::is_fused(xs) { xs.contiguous()?.apply_op2(bias, AddBias) } else { xs.broadcast_add(bias) }
}

struct AddBias;
struct SumRows;

impl CustomOp2 for AddBias {
    fn name(&self) -> &'static str {
        "add-bias"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        bias_storage: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let bias = values(bias_storage, bias_layout)?;
        let dim = bias.len();
        let chunk = dim * super::ROWS_PER_TASK;
        let ys = filled(xs.len(), chunk, |index, ys| {
            for (ys, xs) in ys.chunks_exact_mut(dim).zip(xs[index * chunk..].chunks_exact(dim)) {
                ys.iter_mut().zip(xs).zip(bias).for_each(|((y, x), bias)| *y = x + bias);
            }
        });
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(
        &self,
        _xs: &Tensor,
        _bias: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.detach().contiguous()?;
        let of_bias = gradient.apply_op1_no_bwd(&SumRows)?;
        Ok((Some(gradient), Some(of_bias)))
    }
}

impl CustomOp1 for SumRows {
    fn name(&self) -> &'static str {
        "sum-rows"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = values(storage, layout)?;
        let (_rows, dim) = layout.shape().dims2()?;
        // Collected in order and added up by one thread: the same sum for any number of threads.
        let partial_sums: Vec<Vec<f32>> = rows
            .par_chunks(dim * super::ROWS_PER_TASK)
            .map(|rows| {
                let mut sums = vec![0.; dim];
                for row in rows.chunks_exact(dim) {
                    sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                }
                sums
            })
            .collect();
        Ok((CpuStorage::F32(super::add_up(&partial_sums, dim)), Shape::from(dim)))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Var};

    use super::*;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        let gradients = |dtype: DType| -> Vec<Vec<f64>> {
            let values =
                |count: usize| (0..count).map(|i| (i * 37 % 101) as f64 / 50. - 1.).collect::<Vec<_>>();
            let tensor = |count, shape: &[usize]| {
                Tensor::from_vec(values(count), shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
            };
            let xs = Var::from_tensor(&tensor(170 * 3, &[170, 3])).unwrap();
            let bias = Var::from_tensor(&tensor(3, &[3])).unwrap();
            let ys = add_bias(&xs, &bias).unwrap();
            let gradients = ys.sqr().unwrap().sum_all().unwrap().backward().unwrap();
            [&ys, gradients.get(&xs).unwrap(), gradients.get(&bias).unwrap()]
                .map(|tensor| tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap())
                .to_vec()
        };
        for (fused, composed) in
            gradients(DType::F32).iter().flatten().zip(gradients(DType::F64).iter().flatten())
        {
            assert!((fused - composed).abs() < 1e-4, "{fused} {composed}");
        }
    }
}
