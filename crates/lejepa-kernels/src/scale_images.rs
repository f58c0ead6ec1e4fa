//! `y = factor[image] * x` for every row of an image; the factors are constants.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;

/// # Shapes
/// - `rows` and result: `(images * places, dim)`; one factor per image
pub fn scale_images(rows: &Tensor, factors: Vec<f32>) -> Result<Tensor> {
    if super::is_fused(rows) {
        return rows.contiguous()?.apply_op1(ScaleImages { factors });
    }
    let (count, dim) = rows.dims2()?;
    let images = factors.len();
    let factors = Tensor::from_vec(factors, (images, 1, 1), rows.device())?.to_dtype(rows.dtype())?;
    rows.reshape((images, count / images.max(1), dim))?.broadcast_mul(&factors)?.reshape((count, dim))
}

#[derive(Clone)]
struct ScaleImages {
    factors: Vec<f32>,
}

impl CustomOp1 for ScaleImages {
    fn name(&self) -> &'static str {
        "scale-images"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let xs = values(storage, layout)?;
        let mut ys = vec![0.; xs.len()];
        let image = (xs.len() / self.factors.len().max(1)).max(1);
        let pairs = ys.par_chunks_mut(image).zip(xs.par_chunks(image));
        pairs.zip(&self.factors).for_each(|((ys, xs), factor)| {
            ys.iter_mut().zip(xs).for_each(|(y, x)| *y = factor * x);
        });
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(&self, _xs: &Tensor, _ys: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(gradient.detach().contiguous()?.apply_op1_no_bwd(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::*;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        assert_fused_agrees(&[&[12, 5]], |tensors| scale_images(&tensors[0], vec![0., 1.25, -2.]).unwrap());
    }
}
