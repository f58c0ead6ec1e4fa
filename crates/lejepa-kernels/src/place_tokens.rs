//! The first tokens of a transformer: those of the patches behind those that every image has, with what is
//! added to all images alike.
//!
//! ```text
//! y[image, t] = shared[t] + (patches[image, t - prefix] if t >= prefix)
//! ```

use candle_core::{Result, Shape, Tensor};
use rayon::prelude::*;

use crate::is_fused;
use crate::operation::{Backward, Operation, View, apply, compute};

/// Patches behind the first `prefix` tokens of every image.
///
/// # Shapes
/// - `patches`: `(images * patches, dim)`; `shared`: `(prefix + patches, dim)`
/// - result: `(images * (prefix + patches), dim)`
pub fn place_tokens(patches: &Tensor, shared: &Tensor, prefix: usize) -> Result<Tensor> {
    let (tokens, dim) = shared.dims2()?;
    if is_fused(patches) {
        return apply(PlaceTokens { tokens, prefix, dim }, [patches, shared]);
    }
    let images = patches.dim(0)? / (tokens - prefix).max(1);
    let patches = patches.reshape((images, tokens - prefix, dim))?;
    let patches = if prefix == 0 { patches } else { patches.pad_with_zeros(1, prefix, 0)? };
    patches.broadcast_add(&shared.unsqueeze(0)?)?.reshape((images * tokens, dim))
}

struct PlaceTokens {
    tokens: usize,
    prefix: usize,
    dim: usize,
}

impl PlaceTokens {
    /// Values of an image.
    fn image(&self) -> usize {
        self.tokens * self.dim
    }

    /// Values before the patches.
    fn prefix(&self) -> usize {
        self.prefix * self.dim
    }

    fn patch_gradient(&self, gradient: &[f32]) -> Vec<f32> {
        let of_image = self.image() - self.prefix();
        let mut result = vec![0.; gradient.len() / self.image() * of_image];
        let images = result.par_chunks_mut(of_image.max(1)).zip(gradient.par_chunks(self.image()));
        images.for_each(|(result, gradient)| result.copy_from_slice(&gradient[self.prefix()..]));
        result
    }

    fn shared_gradient(&self, gradient: &[f32]) -> Vec<f32> {
        let mut result = vec![0.; self.image()];
        // A token is summed by one thread, in the order of the images.
        result.par_chunks_mut(self.dim).enumerate().for_each(|(token, result)| {
            for image in gradient.chunks_exact(self.image()) {
                let row = &image[token * self.dim..][..self.dim];
                result.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        });
        result
    }
}

impl Operation<2> for PlaceTokens {
    fn name(&self) -> &'static str {
        "place-tokens"
    }

    fn cpu(&self, [patches, shared]: [View<'_>; 2]) -> Result<(Vec<f32>, Shape)> {
        let (prefix, shared) = shared.values.split_at(self.prefix());
        let of_image = shared.len().max(1);
        let mut ys = vec![0.; patches.len() / of_image * self.image()];
        ys.par_chunks_mut(self.image()).zip(patches.par_chunks(of_image)).for_each(|(ys, patches)| {
            let (first, ys) = ys.split_at_mut(prefix.len());
            first.copy_from_slice(prefix);
            ys.iter_mut().zip(patches).zip(shared).for_each(|((y, patch), shared)| *y = patch + shared);
        });
        let shape = Shape::from((ys.len() / self.dim, self.dim));
        Ok((ys, shape))
    }

    fn backward(&self, backward: Backward<2>) -> Result<[Option<Tensor>; 2]> {
        let Backward { inputs: [patches, shared], gradient, .. } = backward;
        let of_patches = compute([&gradient], patches.shape(), |[gradient]| self.patch_gradient(&gradient))?;
        let of_shared = compute([&gradient], shared.shape(), |[gradient]| self.shared_gradient(&gradient))?;
        Ok([of_patches, of_shared].map(Some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::assert_fused_agrees;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (images, patches, prefix, dim) in [(3, 4, 1, 5), (1, 1, 0, 2), (2, 3, 5, 4)] {
            assert_fused_agrees(&[&[images * patches, dim], &[prefix + patches, dim]], |tensors| {
                place_tokens(&tensors[0], &tensors[1], prefix).unwrap()
            });
        }
    }
}
