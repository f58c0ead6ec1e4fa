//! The part of an image that an encoder sees.

use lejepa_data::{Image, Preprocess};

use crate::Result;

/// Pixels of the shorter side from which on a picture is large enough for a person.
const SHOWN: usize = 256;

/// The part of an image that goes into an encoder, at a whole multiple of the encoder's own size.
pub fn seen(preprocess: &Preprocess, image: &Image) -> Result<Image> {
    let (height, width) = (preprocess.crop_height, preprocess.crop_width);
    let scale = SHOWN.div_ceil(height.min(width).max(1));
    Ok(preprocess.for_size(height * scale, width * scale).resized(image)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_encoders_crop_at_a_larger_size() {
        // Black to white from left to right: the centre crop of an oblong image has no black.
        let pixels = (0..40 * 120).map(|pixel| (pixel % 120 * 2) as u8).collect();
        let image = Image::from_pixels(40, 120, 1, pixels).unwrap();
        let preprocess = Preprocess::new(32, (28, 28), 1);
        let (small, large) = (preprocess.resized(&image).unwrap(), seen(&preprocess, &image).unwrap());
        assert_eq!((large.height(), large.width()), (280, 280));
        let middle =
            |image: &Image, column: usize| image.pixels()[image.width() * image.height() / 2 + column];
        for (few, many) in [(0, 5), (14, 145), (27, 275)] {
            assert!(middle(&small, few).abs_diff(middle(&large, many)) <= 3);
        }
        let wide = seen(&Preprocess::new(512, (448, 672), 3), &image).unwrap();
        assert_eq!((wide.height(), wide.width(), wide.channels()), (448, 672, 3));
    }

    #[test]
    fn a_single_pixel_fills_the_picture() {
        let image = Image::from_pixels(1, 1, 3, vec![9, 8, 7]).unwrap();
        let shown = seen(&Preprocess::new(64, (64, 64), 3), &image).unwrap();
        assert_eq!((shown.height(), shown.width()), (256, 256));
        assert!(shown.pixels().as_chunks::<3>().0.iter().all(|pixel| *pixel == [9, 8, 7]));
    }
}
