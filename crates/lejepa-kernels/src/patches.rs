//! Images as rows of patches: a permutation of their pixels.

use candle_core::{Result, Shape, Tensor};
use rayon::prelude::*;

use crate::is_fused;
use crate::operation::{Backward, Operation, View, apply, compute};

/// The patches of every image, line by line.
///
/// # Shapes
/// - `pixels`: `(images, channels, height, width)`, sides that are multiples of `patch`
/// - result: `(images * rows * columns, channels * patch * patch)`
pub fn patches(pixels: &Tensor, patch: usize) -> Result<Tensor> {
    let (images, channels, height, width) = pixels.dims4()?;
    let (rows, columns) = (height / patch, width / patch);
    if is_fused(pixels) {
        return apply(Patches { patch, channels, height, width }, [pixels]);
    }
    pixels
        .reshape(&[images, channels, rows, patch, columns, patch][..])?
        .permute(vec![0, 2, 4, 1, 3, 5])? // (images, rows, columns, channels, patch, patch)
        .reshape((images * rows * columns, channels * patch * patch))
}

struct Patches {
    patch: usize,
    channels: usize,
    height: usize,
    width: usize,
}

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

    fn to_rows(&self, pixels: &[f32]) -> Vec<f32> {
        let mut rows = vec![0.; pixels.len()];
        let images = rows.par_chunks_mut(self.image()).zip(pixels.par_chunks(self.image()));
        images.for_each(|(rows, pixels)| {
            for (from, to) in self.runs() {
                rows[to..][..self.patch].copy_from_slice(&pixels[from..][..self.patch]);
            }
        });
        rows
    }

    fn to_pixels(&self, rows: &[f32]) -> Vec<f32> {
        let mut pixels = vec![0.; rows.len()];
        let images = pixels.par_chunks_mut(self.image()).zip(rows.par_chunks(self.image()));
        images.for_each(|(pixels, rows)| {
            for (to, from) in self.runs() {
                pixels[to..][..self.patch].copy_from_slice(&rows[from..][..self.patch]);
            }
        });
        pixels
    }
}

impl Operation<1> for Patches {
    fn name(&self) -> &'static str {
        "patches"
    }

    fn cpu(&self, [pixels]: [View<'_>; 1]) -> Result<(Vec<f32>, Shape)> {
        let rows = self.to_rows(&pixels);
        let length = self.channels * self.patch * self.patch;
        let shape = Shape::from((rows.len() / length, length));
        Ok((rows, shape))
    }

    fn backward(&self, backward: Backward<1>) -> Result<[Option<Tensor>; 1]> {
        let Backward { inputs: [pixels], gradient, .. } = backward;
        Ok([Some(compute([&gradient], pixels.shape(), |[gradient]| self.to_pixels(&gradient))?)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::assert_fused_agrees;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (shape, patch) in [([2, 3, 8, 12], 4), ([1, 1, 3, 3], 3), ([3, 2, 2, 5], 1)] {
            assert_fused_agrees(&[&shape], |tensors| patches(&tensors[0], patch).unwrap());
        }
    }
}
