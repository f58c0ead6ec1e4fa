//! `y = x + bias` for every row, with the bias' gradient summed on all cores.

use candle_core::{Result, Shape, Tensor};

use crate::filled::filled;
use crate::is_fused;
use crate::operation::{Backward, Operation, View, apply, compute};
use crate::sums::{ROWS_PER_TASK, sum_rows};

/// Adds the same to every row.
///
/// # Shapes
/// - `xs` and result: `(rows, dim)`; `bias`: `(dim)`
pub fn add_bias(xs: &Tensor, bias: &Tensor) -> Result<Tensor> {
    if is_fused(xs) { apply(AddBias, [xs, bias]) } else { xs.broadcast_add(bias) }
}

struct AddBias;

impl Operation<2> for AddBias {
    fn name(&self) -> &'static str {
        "add-bias"
    }

    fn cpu(&self, [xs, bias]: [View<'_>; 2]) -> Result<(Vec<f32>, Shape)> {
        let dim = bias.len();
        let chunk = dim * ROWS_PER_TASK;
        let ys = filled(xs.len(), chunk, |index, ys| {
            for (ys, xs) in ys.chunks_exact_mut(dim).zip(xs[index * chunk..].chunks_exact(dim)) {
                ys.iter_mut().zip(xs).zip(bias.values).for_each(|((y, x), bias)| *y = x + bias);
            }
        });
        Ok((ys, xs.shape.clone()))
    }

    fn backward(&self, Backward { gradient, .. }: Backward<2>) -> Result<[Option<Tensor>; 2]> {
        let (_rows, dim) = gradient.dims2()?;
        let of_bias = compute([&gradient], dim, |[gradient]| sum_rows(&gradient, dim))?;
        Ok([gradient, of_bias].map(Some))
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
