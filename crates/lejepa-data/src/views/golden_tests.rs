//! Every image operation against torchvision v2 on a Pillow image.

use super::colour::{self, Adjustment};
use super::planes::{Orientation, Planes};
use super::{Blur, ViewSize};
use crate::resize::Resizer;
use crate::{CropBox, Image};

const HEIGHT: usize = 72;
const WIDTH: usize = 96;

fn assert_within_one_level(values: &[u8], expected: &[u8], what: &str) {
    assert_eq!(values.len(), expected.len(), "{what}");
    let worst = values.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
    assert!(worst <= 1, "{what}: {worst} levels");
}

fn interleaved(planes: &Planes) -> Vec<u8> {
    let pixels = planes.size().height * planes.size().width;
    (0..pixels).flat_map(|pixel| planes.channels().iter().map(move |plane| plane[pixel])).collect()
}

#[test]
fn image_operations_agree_with_torchvision_within_one_grey_level() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/image_ops.safetensors");
    let bytes = std::fs::read(path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let expected = |name: &str| tensors.tensor(name).unwrap().data();
    let original = Image::from_pixels(HEIGHT, WIDTH, 3, expected("image").to_vec()).unwrap();
    let size = ViewSize { height: HEIGHT, width: WIDTH };
    let loaded = |orientation: Orientation| {
        let mut planes = Planes::default();
        planes.load(original.pixels(), 3, size, orientation);
        planes
    };

    for (name, adjustment) in [
        ("brightness_1.3", Adjustment::Brightness(1.3)),
        ("contrast_0.6", Adjustment::Contrast(0.6)),
        ("saturation_1.7", Adjustment::Saturation(1.7)),
        ("hue_0.08", Adjustment::Hue((0.08 * 255.) as u8)),
        ("grayscale", Adjustment::Grey),
    ] {
        let mut planes = loaded(Orientation::default());
        colour::adjust(&mut planes, &[None, Some(adjustment), None, None, None]);
        assert_within_one_level(&interleaved(&planes), expected(name), name);
    }

    let mut planes = loaded(Orientation::default());
    planes.solarize(128);
    assert_within_one_level(&interleaved(&planes), expected("solarize_128"), "solarize");

    let mut planes = loaded(Orientation::default());
    Blur::default().apply(&mut planes, 7, 1.2);
    assert_within_one_level(&interleaved(&planes), expected("blur_7_sigma_1.2"), "blur");

    let planes = loaded(Orientation { flip: true, ..Default::default() });
    assert_within_one_level(&interleaved(&planes), expected("hflip"), "flip");

    for (top, left, height, width) in [(10, 20, 40, 50), (5, 5, 12, 16)] {
        let name = format!("resized_crop_bilinear_{top}_{left}_{height}_{width}_to_32");
        let mut resized = Vec::new();
        let crop = CropBox { top, left, height, width };
        Resizer::default().crop(&original, crop, (32, 32), &mut resized).unwrap();
        assert_within_one_level(&resized, expected(&name), &name);
    }

    let name = "resize_short_bicubic_48_center_crop_40";
    let cropped = crate::Preprocess::new(48, (40, 40), 3).resized(&original).unwrap();
    assert_within_one_level(cropped.pixels(), expected(name), name);

    let grey = original.with_channels(1).with_channels(3);
    assert_within_one_level(grey.pixels(), expected("grayscale"), "grey");
}
