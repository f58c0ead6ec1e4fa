//! Images as rows of patches: a permutation of their pixels.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;

/// # Shapes
/// - `pixels`: `(images, channels, height, width)`, sides that are multiples of `patch`
/// - result: `(images * rows * columns, channels * patch * patch)`
pub fn patches(pixels: &Tensor, patch: usize) -> Result<Tensor> {
    let (images, channels, height, width) = pixels.dims4()?;
    let (rows, columns) = (height / patch, width / patch);
    if super::is_fused(pixels) {
        return pixels.contiguous()?.apply_op1(Patches { patch, channels, height, width });
    }
    pixels
        .reshape(&[images, channels, rows, patch, columns, patch][..])?
        .permute(vec![0, 2, 4, 1, 3, 5])? // (images, rows, columns, channels, patch, patch)
        .reshape((images * rows * columns, channels * patch * patch))
}

#[derive(Clone, Copy)]
struct Patches {
    patch: usize,
    channels: usize,
    height: usize,
    width: usize,
}

struct Pixels(Patches);

impl Patches {
    fn image(&self) -> usize {
        self.channels * self.height * self.width
    }

    /// Where every `patch` pixels side by side begin in an image and in its patches.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        let Self { patch, channels, height, width } = *self;
        let columns = width / patch;
        (0..channels * height).flat_map(move |line| {
            let (channel, y) = (line / height, line % height);
            let first = (y / patch * columns * channels + channel) * patch * patch + y % patch * patch;
            (0..columns)
                .map(move |column| (line * width + column * patch, first + column * channels * patch * patch))
        })
    }
}

impl CustomOp1 for Patches {
    fn name(&self) -> &'static str {
        "patches"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let pixels = values(storage, layout)?;
        let mut rows = vec![0.; pixels.len()];
        let images = rows.par_chunks_mut(self.image()).zip(pixels.par_chunks(self.image()));
        images.for_each(|(rows, pixels)| {
            for (from, to) in self.runs() {
                rows[to..][..self.patch].copy_from_slice(&pixels[from..][..self.patch]);
            }
        });
        let length = self.channels * self.patch * self.patch;
        let shape = Shape::from((rows.len() / length, length));
        Ok((CpuStorage::F32(rows), shape))
    }

    fn bwd(&self, pixels: &Tensor, _rows: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = gradient.detach().contiguous()?.apply_op1_no_bwd(&Pixels(*self))?;
        Ok(Some(gradient.reshape(pixels.shape())?))
    }
}

impl CustomOp1 for Pixels {
    fn name(&self) -> &'static str {
        "pixels"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = values(storage, layout)?;
        let mut pixels = vec![0.; rows.len()];
        let images = pixels.par_chunks_mut(self.0.image()).zip(rows.par_chunks(self.0.image()));
        images.for_each(|(pixels, rows)| {
            for (to, from) in self.0.runs() {
                pixels[to..][..self.0.patch].copy_from_slice(&rows[from..][..self.0.patch]);
            }
        });
        let count = pixels.len();
        Ok((CpuStorage::F32(pixels), Shape::from(count)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::*;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (shape, patch) in [([2, 3, 8, 12], 4), ([1, 1, 3, 3], 3), ([3, 2, 2, 5], 1)] {
            assert_fused_agrees(&[&shape], |tensors| patches(&tensors[0], patch).unwrap());
        }
    }
}
