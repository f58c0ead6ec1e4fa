//! Swaps the last two axes in memory; Candle's own copy of a transpose runs on one core.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::contiguous::values;
use super::filled::filled;

/// # Shapes
/// - `xs`: `(blocks, rows, columns)`
/// - result: `(blocks, columns, rows)`
pub fn transpose(xs: &Tensor) -> Result<Tensor> {
    if super::is_fused(xs) { xs.contiguous()?.apply_op1(Transpose) } else { xs.transpose(1, 2)?.contiguous() }
}

struct Transpose;

impl CustomOp1 for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let (blocks, rows, columns) = layout.shape().dims3()?;
        let block = rows * columns;
        let ys = filled(xs.len(), block, |index, ys| {
            for (row, xs) in xs[index * block..][..block].chunks_exact(columns).enumerate() {
                ys.iter_mut().skip(row).step_by(rows).zip(xs).for_each(|(y, x)| *y = *x);
            }
        });
        Ok((CpuStorage::F32(ys), Shape::from((blocks, columns, rows))))
    }

    fn bwd(&self, _xs: &Tensor, _ys: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(gradient.detach().contiguous()?.apply_op1_no_bwd(&Transpose)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::*;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        assert_fused_agrees(&[&[4, 5, 3]], |tensors| transpose(&tensors[0]).unwrap());
    }
}
