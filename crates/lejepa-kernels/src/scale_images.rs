//! `y = factor[image] * x` for every row of an image; the factors are constants.

use candle_core::{Result, Shape, Tensor};
use rayon::prelude::*;

use crate::is_fused;
use crate::operation::{Backward, Operation, View, apply, compute};

/// Multiplies every image by a factor of its own.
///
/// # Shapes
/// - `rows` and result: `(images * places, dim)`; one factor per image
pub fn scale_images(rows: &Tensor, factors: Vec<f32>) -> Result<Tensor> {
    if is_fused(rows) {
        return apply(ScaleImages { factors }, [rows]);
    }
    let (count, dim) = rows.dims2()?;
    let images = factors.len();
    let factors = Tensor::from_vec(factors, (images, 1, 1), rows.device())?.to_dtype(rows.dtype())?;
    rows.reshape((images, count / images.max(1), dim))?.broadcast_mul(&factors)?.reshape((count, dim))
}

struct ScaleImages {
    factors: Vec<f32>,
}

impl ScaleImages {
    fn scale(&self, xs: &[f32]) -> Vec<f32> {
        let mut ys = vec![0.; xs.len()];
        let image = (xs.len() / self.factors.len().max(1)).max(1);
        let pairs = ys.par_chunks_mut(image).zip(xs.par_chunks(image));
        pairs.zip(&self.factors).for_each(|((ys, xs), factor)| {
            ys.iter_mut().zip(xs).for_each(|(y, x)| *y = factor * x);
        });
        ys
    }
}

impl Operation<1> for ScaleImages {
    fn name(&self) -> &'static str {
        "scale-images"
    }

    fn cpu(&self, [xs]: [View<'_>; 1]) -> Result<(Vec<f32>, Shape)> {
        Ok((self.scale(&xs), xs.shape.clone()))
    }

    fn backward(&self, Backward { gradient, .. }: Backward<1>) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(compute([&gradient], gradient.shape(), |[gradient]| self.scale(&gradient))?)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::assert_fused_agrees;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        assert_fused_agrees(&[&[12, 5]], |tensors| scale_images(&tensors[0], vec![0., 1.25, -2.]).unwrap());
    }
}
