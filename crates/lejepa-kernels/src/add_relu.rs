//! `y = max(0, a + b)`; the gradient passes where `y > 0`.

use candle_core::{Result, Shape, Tensor};

use crate::filled::filled;
use crate::is_fused;
use crate::operation::{Backward, Operation, View, apply, compute};

/// The sum where it is positive, zero elsewhere.
///
/// # Shapes
/// - `left`, `right` and result: the same
pub fn add_relu(left: &Tensor, right: &Tensor) -> Result<Tensor> {
    if is_fused(left) { apply(AddRelu, [left, right]) } else { (left + right)?.relu() }
}

/// Values per task.
const CHUNK: usize = 1 << 14;

struct AddRelu;

/// `result = combine(left, right)`, element by element on all cores.
fn combine(left: &[f32], right: &[f32], combine: impl Fn(f32, f32) -> f32 + Sync) -> Vec<f32> {
    filled(left.len(), CHUNK, |index, result| {
        let (left, right) = (&left[index * CHUNK..], &right[index * CHUNK..]);
        for ((result, left), right) in result.iter_mut().zip(left).zip(right) {
            *result = combine(*left, *right);
        }
    })
}

impl Operation<2> for AddRelu {
    fn name(&self) -> &'static str {
        "add-relu"
    }

    fn cpu(&self, [left, right]: [View<'_>; 2]) -> Result<(Vec<f32>, Shape)> {
        // Not a number stays one: `max` would hide it.
        let ys = combine(&left, &right, |left, right| if left + right <= 0. { 0. } else { left + right });
        Ok((ys, left.shape.clone()))
    }

    fn backward(&self, Backward { result, gradient, .. }: Backward<2>) -> Result<[Option<Tensor>; 2]> {
        let passed = compute([&result, &gradient], gradient.shape(), |[ys, gradient]| {
            combine(&ys, &gradient, |y, gradient| if y <= 0. { 0. } else { gradient })
        })?;
        Ok([passed.clone(), passed].map(Some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::assert_fused_agrees;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        assert_fused_agrees(&[&[12, 5], &[12, 5]], |tensors| add_relu(&tensors[0], &tensors[1]).unwrap());
    }
}
