//! A colour laid over a part of an image.

use lejepa_data::Image;
use ndarray::ArrayView2;

use crate::Result;

/// What is laid over an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlay {
    /// Red, green and blue.
    pub colour: [u8; 3],
    /// From 0, nothing is seen of it, to 1, nothing is seen of the image below it.
    pub opacity: f32,
}

impl Overlay {
    /// The image, in colour, with the overlay as far as it covers each pixel, from 0 to 1.
    ///
    /// # Shapes
    /// - `coverage`: `(height, width)` of the image
    pub fn draw(&self, image: &Image, coverage: ArrayView2<'_, f32>) -> Result<Image> {
        blend(image, coverage, |share| (self.colour, share * self.opacity))
    }

    /// The image, in colour, with the overlay where the mask is set.
    ///
    /// # Shapes
    /// - `mask`: `(height, width)` of the image
    pub fn draw_mask(&self, image: &Image, mask: ArrayView2<'_, bool>) -> Result<Image> {
        self.draw(image, mask.mapv(|is_set| f32::from(u8::from(is_set))).view())
    }
}

/// The image with a colour and its weight, made of a value for each pixel, over it.
pub(super) fn blend(
    image: &Image,
    values: ArrayView2<'_, f32>,
    colour: impl Fn(f32) -> ([u8; 3], f32),
) -> Result<Image> {
    let (height, width) = (image.height(), image.width());
    if values.dim() != (height, width) {
        let (expected, got) = (height * width, values.len());
        return Err(lejepa_data::Error::BufferLength { what: "overlay", expected, got }.into());
    }
    let below = image.clone().with_channels(3);
    let pixels = below.pixels().as_chunks::<3>().0.iter().zip(&values).flat_map(|(pixel, &value)| {
        let (colour, weight) = colour(value);
        let weight = weight.clamp(0., 1.);
        let mix = |(below, above): (u8, u8)| {
            (f32::from(below) * (1. - weight) + f32::from(above) * weight).round() as u8
        };
        [0, 1, 2].map(|channel| mix((pixel[channel], colour[channel])))
    });
    Ok(Image::from_pixels(height, width, 3, pixels.collect())?)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;

    #[test]
    fn covered_pixels_are_mixed_and_others_stay() {
        let image = Image::from_pixels(1, 3, 1, vec![100; 3]).unwrap();
        let overlay = Overlay { colour: [200, 0, 100], opacity: 0.5 };
        let drawn = overlay.draw(&image, array![[0., 0.5, 1.]].view()).unwrap();
        assert_eq!(drawn.pixels(), [100, 100, 100, 125, 75, 100, 150, 50, 100]);
        let drawn = overlay.draw_mask(&image, array![[false, false, true]].view()).unwrap();
        assert_eq!(drawn.pixels(), [100, 100, 100, 100, 100, 100, 150, 50, 100]);
    }

    #[test]
    fn a_mask_of_another_size_is_refused() {
        let image = Image::from_pixels(2, 3, 1, vec![0; 6]).unwrap();
        let overlay = Overlay { colour: [0; 3], opacity: 1. };
        assert!(overlay.draw(&image, Array2::zeros((3, 2)).view()).is_err());
    }
}
