//! Swaps the last two axes in memory; Candle's own copy of a transpose runs on one core.

use candle_core::{Result, Shape, Tensor};

use crate::filled::filled;
use crate::is_fused;
use crate::operation::{Backward, Operation, View, apply, compute};

/// Columns as rows, block by block.
///
/// # Shapes
/// - `xs`: `(blocks, rows, columns)`
/// - result: `(blocks, columns, rows)`
pub fn transpose(xs: &Tensor) -> Result<Tensor> {
    if is_fused(xs) { apply(Transpose, [xs]) } else { xs.transpose(1, 2)?.contiguous() }
}

struct Transpose;

fn transposed(xs: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    let block = rows * columns;
    filled(xs.len(), block, |index, ys| {
        for (row, xs) in xs[index * block..][..block].chunks_exact(columns).enumerate() {
            ys.iter_mut().skip(row).step_by(rows).zip(xs).for_each(|(y, x)| *y = *x);
        }
    })
}

impl Operation<1> for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn cpu(&self, [xs]: [View<'_>; 1]) -> Result<(Vec<f32>, Shape)> {
        let (blocks, rows, columns) = xs.shape.dims3()?;
        Ok((transposed(&xs, [rows, columns]), Shape::from((blocks, columns, rows))))
    }

    fn backward(&self, Backward { gradient, .. }: Backward<1>) -> Result<[Option<Tensor>; 1]> {
        let (blocks, columns, rows) = gradient.dims3()?;
        let shape = (blocks, rows, columns);
        Ok([Some(compute([&gradient], shape, |[gradient]| transposed(&gradient, [columns, rows]))?)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::assert_fused_agrees;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        assert_fused_agrees(&[&[4, 5, 3]], |tensors| transpose(&tensors[0]).unwrap());
    }
}
