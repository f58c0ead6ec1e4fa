//! Every kind of image file shows what Pillow shows. `tests/formats/make_images.py` wrote the files.

#![allow(clippy::unwrap_used)]

use lejepa_data::Image;
use safetensors::SafeTensors;

const FORMATS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats");

/// Decoders may round colour conversions and fill in subsampled colours in their own ways: a mean
/// difference of so many of 255 levels.
const LOSSY_TOLERANCE: f64 = 2.;

#[test]
fn image_files_of_every_kind_show_what_pillow_shows() {
    let bytes = std::fs::read(format!("{FORMATS}/images.safetensors")).unwrap();
    let shown = SafeTensors::deserialize(&bytes).unwrap();
    assert!(shown.len() > 30);
    for (name, expected) in shown.iter() {
        let image = Image::open(format!("{FORMATS}/images/{name}").as_ref());
        if name.contains("16_bit") {
            // Pillow clips or scales them: there is no right way without knowing the data.
            let reason = std::error::Error::source(&image.unwrap_err()).unwrap().to_string();
            assert!(reason.contains("got 16 bits per value: convert it"), "{name}: {reason}");
            continue;
        }
        if name.starts_with("two_frames") {
            let reason = std::error::Error::source(&image.unwrap_err()).unwrap().to_string();
            assert!(reason.contains("got an animation of 2 frames: write one file"), "{name}: {reason}");
            continue;
        }
        let image = image.unwrap();
        assert_eq!([image.height(), image.width(), 3], expected.shape(), "{name}");
        // A BMP file keeps grey as a palette of colours.
        let grey = name != "grey.bmp" && (name.starts_with("grey") || name == "two_tone.png");
        assert_eq!(image.channels() == 1, grey, "{name}");
        let image = image.with_channels(3);
        let total: u64 = image
            .pixels()
            .iter()
            .zip(expected.data())
            .map(|(&got, &expected)| u64::from(got.abs_diff(expected)))
            .sum();
        let difference = total as f64 / expected.data().len() as f64;
        let lossy = name.ends_with(".jpg") || name == "lossy.webp";
        let tolerance = if lossy { LOSSY_TOLERANCE } else { 0. };
        assert!(difference <= tolerance, "{name} differs by {difference} on average");
    }
}
