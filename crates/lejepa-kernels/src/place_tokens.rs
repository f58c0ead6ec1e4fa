//! The first tokens of a transformer: those of the patches behind those that every image has, with what is
//! added to all images alike.
//!
//! ```text
//! y[image, t] = shared[t] + (patches[image, t - prefix] if t >= prefix)
//! ```

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;

/// # Shapes
/// - `patches`: `(images * patches, dim)`; `shared`: `(prefix + patches, dim)`
/// - result: `(images * (prefix + patches), dim)`
pub fn place_tokens(patches: &Tensor, shared: &Tensor, prefix: usize) -> Result<Tensor> {
    let (tokens, dim) = shared.dims2()?;
    let sizes = Sizes { tokens, prefix, dim };
    if super::is_fused(patches) {
        return patches.contiguous()?.apply_op2(&shared.contiguous()?, PlaceTokens(sizes));
    }
    let images = patches.dim(0)? / (tokens - prefix).max(1);
    let patches = patches.reshape((images, tokens - prefix, dim))?;
    let patches = if prefix == 0 { patches } else { patches.pad_with_zeros(1, prefix, 0)? };
    patches.broadcast_add(&shared.unsqueeze(0)?)?.reshape((images * tokens, dim))
}

#[derive(Clone, Copy)]
struct Sizes {
    tokens: usize,
    prefix: usize,
    dim: usize,
}

impl Sizes {
    fn image(&self) -> usize {
        self.tokens * self.dim
    }

    fn prefix(&self) -> usize {
        self.prefix * self.dim
    }
}

struct PlaceTokens(Sizes);
struct OfPatches(Sizes);
struct OfShared(Sizes);

impl CustomOp2 for PlaceTokens {
    fn name(&self) -> &'static str {
        "place-tokens"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        shared_storage: &CpuStorage,
        shared_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let patches = values(storage, layout)?;
        let (prefix, shared) = values(shared_storage, shared_layout)?.split_at(self.0.prefix());
        let of_image = shared.len().max(1);
        let mut ys = vec![0.; patches.len() / of_image * self.0.image()];
        ys.par_chunks_mut(self.0.image()).zip(patches.par_chunks(of_image)).for_each(|(ys, patches)| {
            let (first, ys) = ys.split_at_mut(prefix.len());
            first.copy_from_slice(prefix);
            ys.iter_mut().zip(patches).zip(shared).for_each(|((y, patch), shared)| *y = patch + shared);
        });
        let shape = Shape::from((ys.len() / self.0.dim, self.0.dim));
        Ok((CpuStorage::F32(ys), shape))
    }

    fn bwd(
        &self,
        _patches: &Tensor,
        _shared: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.detach().contiguous()?;
        let of_patches = gradient.apply_op1_no_bwd(&OfPatches(self.0))?;
        Ok((Some(of_patches), Some(gradient.apply_op1_no_bwd(&OfShared(self.0))?)))
    }
}

impl CustomOp1 for OfPatches {
    fn name(&self) -> &'static str {
        "place-tokens-patch-gradient"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let gradient = values(storage, layout)?;
        let of_image = self.0.image() - self.0.prefix();
        let mut result = vec![0.; gradient.len() / self.0.image() * of_image];
        let images = result.par_chunks_mut(of_image.max(1)).zip(gradient.par_chunks(self.0.image()));
        images.for_each(|(result, gradient)| result.copy_from_slice(&gradient[self.0.prefix()..]));
        let shape = Shape::from((result.len() / self.0.dim, self.0.dim));
        Ok((CpuStorage::F32(result), shape))
    }
}

impl CustomOp1 for OfShared {
    fn name(&self) -> &'static str {
        "place-tokens-shared-gradient"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let gradient = values(storage, layout)?;
        let mut result = vec![0.; self.0.image()];
        // A token is summed by one thread, in the order of the images.
        result.par_chunks_mut(self.0.dim).enumerate().for_each(|(token, result)| {
            for image in gradient.chunks_exact(self.0.image()) {
                let row = &image[token * self.0.dim..][..self.0.dim];
                result.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        });
        Ok((CpuStorage::F32(result), Shape::from((self.0.tokens, self.0.dim))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::*;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (images, patches, prefix, dim) in [(3, 4, 1, 5), (1, 1, 0, 2), (2, 3, 5, 4)] {
            assert_fused_agrees(&[&[images * patches, dim], &[prefix + patches, dim]], |tensors| {
                place_tokens(&tensors[0], &tensors[1], prefix).unwrap()
            });
        }
    }
}
