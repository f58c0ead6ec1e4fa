//! The one way from an image to an encoder's input at inference.
//!
//! Resize (antialiased), cut the centre out, scale to `[0, 1]`, normalise: `(value / 255 - mean) / std`
//! per channel, channels first. The description travels inside the
//! exported encoder, so that embedding and evaluation cannot disagree with training.

use serde::{Deserialize, Serialize};

use crate::resize::{Part, Resizer, Stretch};
use crate::{Error, Image, Result};

/// A description of the transform, as it is stored in an exported encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preprocess {
    /// How the image is brought to the crop's scale.
    pub resize: ResizeRule,
    /// The filter of that.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Rows of the centre crop.
    pub crop_height: usize,
    /// Columns of the centre crop.
    pub crop_width: usize,
    /// 1 for grey, 3 for colour; images are converted.
    pub channels: usize,
    /// Subtracted from values in `[0, 1]`, per channel.
    pub mean: Vec<f32>,
    /// Divides after that, per channel.
    pub std: Vec<f32>,
}

/// To which size an image is resized before its centre is cut out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResizeRule {
    /// The short side gets this many pixels, the other one follows.
    ShortSide(usize),
    /// Both sides get those of the crop: the image is squashed and nothing is cut off.
    Squash,
}

/// The filter of a resize, antialiased in both cases, as Pillow computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// The field's usual one.
    #[default]
    Bicubic,
    /// Used by some encoders of other projects.
    Bilinear,
}

/// Statistics of ImageNet, the field's default for colour images.
const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

impl Preprocess {
    /// With the field's usual normalisation: ImageNet's for colour, 0.5 and 0.5 for grey.
    pub fn new(resize_short_side: usize, (crop_height, crop_width): (usize, usize), channels: usize) -> Self {
        let (mean, std) = if channels == 3 {
            (IMAGENET_MEAN.to_vec(), IMAGENET_STD.to_vec())
        } else {
            (vec![0.5; channels], vec![0.5; channels])
        };
        let resize = ResizeRule::ShortSide(resize_short_side);
        let interpolation = Interpolation::Bicubic;
        Self { resize, interpolation, crop_height, crop_width, channels, mean, std }
    }

    /// The same for a crop of another size: the resize keeps its proportion to the crop.
    pub fn for_size(&self, crop_height: usize, crop_width: usize) -> Self {
        let resize = match self.resize {
            ResizeRule::ShortSide(side) => {
                let (from, to) = (self.crop_height.min(self.crop_width), crop_height.min(crop_width).max(1));
                ResizeRule::ShortSide((side * to + from / 2) / from.max(1))
            }
            ResizeRule::Squash => ResizeRule::Squash,
        };
        Self { resize, crop_height, crop_width, ..self.clone() }
    }

    /// The same with a margin around the crop that is cut off: the short side gets so many times that of the
    /// crop. None where that changes nothing: the image is squashed, or has as wide a margin already.
    pub fn with_margin(&self, factor: f64) -> Option<Self> {
        let ResizeRule::ShortSide(own) = self.resize else { return None };
        let side = (factor * self.crop_height.min(self.crop_width) as f64).round() as usize;
        (side > own).then(|| Self { resize: ResizeRule::ShortSide(side), ..self.clone() })
    }

    /// Refuses a description that cannot be carried out.
    pub fn check(&self) -> Result<()> {
        let refuse = |field, expected: &str, got: String| {
            Err(Error::Setting { field, expected: expected.into(), got })
        };
        let side = 1..=4096;
        if let ResizeRule::ShortSide(pixels) = self.resize
            && !side.contains(&pixels)
        {
            return refuse("resize.short_side", "between 1 and 4096", pixels.to_string());
        }
        if !side.contains(&self.crop_height) || !side.contains(&self.crop_width) {
            let got = format!("{}x{}", self.crop_height, self.crop_width);
            return refuse("crop", "between 1 and 4096 pixels", got);
        }
        if self.channels != 1 && self.channels != 3 {
            return refuse("channels", "1 (grey) or 3 (colour)", self.channels.to_string());
        }
        if self.mean.len() != self.channels || !self.mean.iter().all(|mean| mean.is_finite()) {
            return refuse("mean", "one finite number per channel", format!("{:?}", self.mean));
        }
        if self.std.len() != self.channels || !self.std.iter().all(|std| std.is_finite() && *std > 0.) {
            return refuse("std", "one positive number per channel", format!("{:?}", self.std));
        }
        Ok(())
    }

    /// Values of one transformed image.
    pub fn pixel_count(&self) -> usize {
        self.channels * self.crop_height * self.crop_width
    }

    /// The transformed image.
    ///
    /// # Shapes
    /// - result: `(channels, crop_height, crop_width)`
    pub fn apply(&self, image: &Image) -> Result<Vec<f32>> {
        let mut pixels = vec![0.; self.pixel_count()];
        self.apply_into(image, &mut pixels)?;
        Ok(pixels)
    }

    /// The transformed image, written into a part of a batch.
    pub fn apply_into(&self, image: &Image, pixels: &mut [f32]) -> Result<()> {
        self.normalise_into(&self.resized(image)?, pixels)
    }

    /// The centre of the resized image, still in 8 bits, with the channels converted.
    ///
    /// Only what the crop keeps is computed: a panorama costs no more than a square.
    pub fn resized(&self, image: &Image) -> Result<Image> {
        let (height, width) = (image.height(), image.width());
        let (resized_height, resized_width) = self.resized_size(height, width);
        let part = Part {
            rows: source_stretch(height, resized_height, self.crop_height),
            columns: source_stretch(width, resized_width, self.crop_width),
            interpolation: self.interpolation,
        };
        let crop = (self.crop_height, self.crop_width);
        Ok(Resizer::default().part(image, part, crop)?.with_channels(self.channels))
    }

    /// The whole image's size after resizing: the short side as asked for, both sides no smaller
    /// than the crop.
    fn resized_size(&self, height: usize, width: usize) -> (usize, usize) {
        let ResizeRule::ShortSide(short_side) = self.resize else {
            return (self.crop_height, self.crop_width);
        };
        let (height, width) = (height as f64, width as f64);
        let scale = (short_side as f64 / height.min(width))
            .max(self.crop_height as f64 / height)
            .max(self.crop_width as f64 / width);
        // Whole multiples must not fall one short through rounding errors.
        let size = |side: f64| (side * scale + 1e-6).floor() as usize;
        (size(height).max(self.crop_height), size(width).max(self.crop_width))
    }

    /// How values of a channel become the encoder's.
    #[inline(always)]
    pub(crate) fn normalise(&self, channel: usize) -> Normalise {
        let (mean, std) = (f64::from(self.mean[channel]), f64::from(self.std[channel]));
        Normalise { scale: (1. / (255. * std)) as f32, offset: (-mean / std) as f32 }
    }

    /// The way back from normalised pixels to a picture.
    #[cfg(feature = "datasets")]
    pub(crate) fn picture(&self, height: usize, width: usize, pixels: &[f32]) -> Result<Image> {
        let plane = height * width;
        let values = (0..plane * self.channels).map(|value| {
            let (pixel, channel) = (value / self.channels, value % self.channels);
            let normalised = pixels[channel * plane + pixel];
            ((normalised * self.std[channel] + self.mean[channel]) * 255.).round() as u8
        });
        Image::from_pixels(height, width, self.channels, values.collect())
    }

    /// Scales and normalises an image that already has the right size and channels.
    fn normalise_into(&self, image: &Image, pixels: &mut [f32]) -> Result<()> {
        let plane = image.height() * image.width();
        if pixels.len() != plane * self.channels || image.channels() != self.channels {
            let expected = plane * image.channels();
            return Err(Error::BufferLength { what: "normalised image", expected, got: pixels.len() });
        }
        pulp::Arch::new().dispatch(NormaliseImage { preprocess: self, image, pixels });
        Ok(())
    }
}

/// `(value / 255 - mean) / std`, as one product and one sum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Normalise {
    scale: f32,
    offset: f32,
}

impl Normalise {
    #[inline(always)]
    pub(crate) fn apply(self, value: u8) -> f32 {
        f32::from(value) * self.scale + self.offset
    }
}

/// Compiled for the best instructions that the processor has.
struct NormaliseImage<'a> {
    preprocess: &'a Preprocess,
    image: &'a Image,
    pixels: &'a mut [f32],
}

impl pulp::NullaryFnOnce for NormaliseImage<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { preprocess, image, pixels } = self;
        let plane = image.height() * image.width();
        for (channel, values) in pixels.chunks_exact_mut(plane).enumerate() {
            let normalise = preprocess.normalise(channel);
            if image.channels() == 1 {
                for (value, &byte) in values.iter_mut().zip(image.pixels()) {
                    *value = normalise.apply(byte);
                }
            } else {
                for (value, pixel) in values.iter_mut().zip(image.pixels().as_chunks::<3>().0) {
                    *value = normalise.apply(pixel[channel]);
                }
            }
        }
    }
}

/// Along one axis: where the centre crop of the resized image starts in the source, and how long it is.
fn source_stretch(source: usize, resized: usize, crop: usize) -> Stretch {
    let scaled = |length: f64| length * source as f64 / resized as f64;
    let start = scaled(((resized - crop) as f64 / 2.).round_ties_even());
    // Rounding errors must not reach beyond the image.
    Stretch { start, length: scaled(crop as f64).min(source as f64 - start) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_normalised_per_channel() {
        let image = Image::from_pixels(1, 1, 3, vec![0, 255, 51]).unwrap();
        let mut preprocess = Preprocess::new(1, (1, 1), 3);
        preprocess.mean = vec![0., 0.5, 0.1];
        preprocess.std = vec![1., 0.5, 0.1];
        let pixels = preprocess.apply(&image).unwrap();
        for (value, expected) in pixels.iter().zip([0., 1., 1.]) {
            assert!((value - expected).abs() < 1e-6, "{pixels:?}");
        }
    }

    #[test]
    fn extreme_shapes_are_cropped_not_blown_up() {
        for (height, width) in [(1, 65_000), (65_000, 1), (1, 1), (3, 7)] {
            let image = Image::from_pixels(height, width, 1, vec![9; height * width]).unwrap();
            let pixels = Preprocess::new(256, (224, 200), 1).apply(&image).unwrap();
            assert_eq!(pixels.len(), 224 * 200);
        }
    }

    #[test]
    fn images_of_every_size_are_resized() {
        for side in 1..700 {
            let image = Image::from_pixels(side, 3 + side / 2, 1, vec![200; side * (3 + side / 2)]).unwrap();
            for (resize, crop) in [(28, (28, 28)), (51, (33, 47))] {
                let resized = Preprocess::new(resize, crop, 1).resized(&image).unwrap();
                assert!(resized.pixels().iter().all(|&value| value == 200), "{side}");
            }
        }
    }

    #[test]
    fn a_squashed_image_keeps_its_edges() {
        let left_black = (0..20 * 60).map(|pixel| if pixel % 60 < 30 { 0 } else { 255 }).collect();
        let image = Image::from_pixels(20, 60, 1, left_black).unwrap();
        let squashed = Preprocess { resize: ResizeRule::Squash, ..Preprocess::new(8, (8, 8), 1) };
        let resized = squashed.resized(&image).unwrap();
        assert_eq!((resized.height(), resized.width()), (8, 8));
        for row in resized.pixels().chunks(8) {
            assert_eq!((row[0], row[7]), (0, 255), "{row:?}");
        }
    }

    #[test]
    fn another_size_keeps_the_proportion_of_resize_and_crop() {
        let usual = Preprocess::new(256, (224, 224), 3);
        assert_eq!(usual.for_size(448, 448).resize, ResizeRule::ShortSide(512));
        assert_eq!(usual.for_size(96, 224).resize, ResizeRule::ShortSide(110));
        assert_eq!(usual.for_size(224, 224), usual);
    }

    #[test]
    fn a_description_that_cannot_be_carried_out_is_refused() {
        let good = Preprocess::new(32, (32, 32), 3);
        assert!(good.check().is_ok());
        assert!(Preprocess { std: vec![0.; 3], ..good.clone() }.check().is_err());
        assert!(Preprocess { mean: vec![0.; 2], ..good.clone() }.check().is_err());
        assert!(Preprocess { channels: 4, ..good.clone() }.check().is_err());
        assert!(Preprocess { crop_width: 0, ..good }.check().is_err());
    }

    #[test]
    fn a_margin_is_added_where_there_is_none() {
        let side = |resize, crop| Preprocess::new(resize, (crop, crop), 3).with_margin(256. / 224.);
        assert_eq!(side(224, 224).map(|it| it.resize), Some(ResizeRule::ShortSide(256)));
        assert_eq!(
            side(96, 96).map(|it| (it.resize, it.crop_height)),
            Some((ResizeRule::ShortSide(110), 96))
        );
        assert_eq!(side(256, 224), None, "it has one");
        let squashed = Preprocess { resize: ResizeRule::Squash, ..Preprocess::new(224, (224, 224), 3) };
        assert_eq!(squashed.with_margin(1.5), None);
    }
}
