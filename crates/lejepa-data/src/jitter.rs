//! Brightness and contrast, as torchvision changes them on Pillow images.

use crate::Image;
use crate::image::luma;

/// Multiplies every value: `factor` 1 changes nothing, 0 gives black.
pub(crate) fn adjust_brightness(image: &mut Image, factor: f32) {
    map_values(image, |value| value * factor);
}

/// Stretches every value away from the mean grey: `factor` 1 changes nothing, 0 gives flat grey.
pub(crate) fn adjust_contrast(image: &mut Image, factor: f32) {
    let mean = mean_grey(image);
    map_values(image, |value| mean + (value - mean) * factor);
}

fn map_values(image: &mut Image, map: impl Fn(f32) -> f32) {
    let table: [u8; 256] = std::array::from_fn(|value| map(value as f32).clamp(0., 255.) as u8);
    for value in image.pixels_mut() {
        *value = table[usize::from(*value)];
    }
}

fn mean_grey(image: &Image) -> f32 {
    let sum: u64 = match image.channels() {
        1 => image.pixels().iter().map(|&value| u64::from(value)).sum(),
        _ => image.pixels().chunks_exact(3).map(|rgb| u64::from(luma(rgb))).sum(),
    };
    (sum as f64 / (image.height() * image.width()) as f64).round() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden() -> Vec<u8> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/image_ops.safetensors");
        std::fs::read(path).unwrap()
    }

    fn assert_within_one_level(image: &Image, expected: &[u8], what: &str) {
        assert_eq!(image.pixels().len(), expected.len());
        let worst = image.pixels().iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(worst <= 1, "{what}: {worst} levels");
    }

    #[test]
    fn image_operations_agree_with_torchvision_within_one_grey_level() {
        let bytes = golden();
        let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let expected = |name: &str| tensors.tensor(name).unwrap().data();
        let original = Image::from_pixels(72, 96, 3, expected("image").to_vec()).unwrap();

        let mut image = original.clone();
        adjust_brightness(&mut image, 1.3);
        assert_within_one_level(&image, expected("brightness_1.3"), "brightness");

        let mut image = original.clone();
        adjust_contrast(&mut image, 0.6);
        assert_within_one_level(&image, expected("contrast_0.6"), "contrast");

        let mut image = original.clone();
        image.flip_horizontally();
        assert_within_one_level(&image, expected("hflip"), "flip");

        let grey = original.clone().with_channels(1).with_channels(3);
        assert_within_one_level(&grey, expected("grayscale"), "grey");

        for (top, left, height, width) in [(10, 20, 40, 50), (5, 5, 12, 16)] {
            let crop = crate::CropBox { top, left, height, width };
            let name = format!("resized_crop_bilinear_{top}_{left}_{height}_{width}_to_32");
            assert_within_one_level(&original.resized_crop(crop, 32, 32).unwrap(), expected(&name), &name);
        }

        let name = "resize_short_bicubic_48_center_crop_40";
        let cropped = crate::Preprocess::new(48, (40, 40), 3).resized(&original).unwrap();
        assert_within_one_level(&cropped, expected(name), name);
    }
}
