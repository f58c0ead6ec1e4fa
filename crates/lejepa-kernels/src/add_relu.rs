//! `y = max(0, a + b)`; the gradient passes where `y > 0`.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use super::contiguous::values;
use super::filled::filled;

/// # Shapes
/// - `left`, `right` and result: the same
pub fn add_relu(left: &Tensor, right: &Tensor) -> Result<Tensor> {
    if super::is_fused(left) {
        left.contiguous()?.apply_op2(&right.contiguous()?, AddRelu)
    } else {
        (left + right)?.relu()
    }
}

/// Values per task.
const CHUNK: usize = 1 << 14;

struct AddRelu;
struct PassWherePositive;

/// `result = combine(left, right)`, element by element on all cores.
fn combine(
    [(left_storage, left_layout), (right_storage, right_layout)]: [(&CpuStorage, &Layout); 2],
    combine: impl Fn(f32, f32) -> f32 + Sync,
) -> Result<(CpuStorage, Shape)> {
    let left = values(left_storage, left_layout)?;
    let right = values(right_storage, right_layout)?;
    let result = filled(left.len(), CHUNK, |index, result| {
        let (left, right) = (&left[index * CHUNK..], &right[index * CHUNK..]);
        for ((result, left), right) in result.iter_mut().zip(left).zip(right) {
            *result = combine(*left, *right);
        }
    });
    Ok((CpuStorage::F32(result), left_layout.shape().clone()))
}

impl CustomOp2 for AddRelu {
    fn name(&self) -> &'static str {
        "add-relu"
    }

    fn cpu_fwd(
        &self,
        left_storage: &CpuStorage,
        left_layout: &Layout,
        right_storage: &CpuStorage,
        right_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let inputs = [(left_storage, left_layout), (right_storage, right_layout)];
        // Not a number stays one: `max` would hide it.
        combine(inputs, |left, right| if left + right <= 0. { 0. } else { left + right })
    }

    fn bwd(
        &self,
        _left: &Tensor,
        _right: &Tensor,
        ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.detach().contiguous()?;
        let passed = ys.detach().apply_op2_no_bwd(&gradient, &PassWherePositive)?;
        Ok((Some(passed.clone()), Some(passed)))
    }
}

impl CustomOp2 for PassWherePositive {
    fn name(&self) -> &'static str {
        "pass-where-positive"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let inputs = [(storage, layout), (gradient_storage, gradient_layout)];
        combine(inputs, |y, gradient| if y <= 0. { 0. } else { gradient })
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::*;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        assert_fused_agrees(&[&[12, 5], &[12, 5]], |tensors| add_relu(&tensors[0], &tensors[1]).unwrap());
    }
}
