//! What an exported encoder computes beside what Candle computes, and beside a file of less precision.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use candle_core::{Device, Tensor};
use lejepa_data::{Dataset, Image};
use lejepa_embed::{Encoder, EncoderBuilder};
use lejepa_model::Pass;
use lejepa_train::{Model, TrainConfig};
use ndarray::Array2;

/// How many images are compared.
const IMAGES: usize = 17;
/// How often a speed is measured; the best one counts.
const TRIES: usize = 3;

/// Images to compare on.
pub(super) struct SampleImages {
    images: Vec<Image>,
    kind: &'static str,
}

impl fmt::Display for SampleImages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} images", self.images.len(), self.kind)
    }
}

impl SampleImages {
    /// Training images, or made-up ones where the data is not at hand any more.
    pub(super) fn of(config: &TrainConfig) -> Result<Self> {
        let opened = config.data.open(&mut Ok);
        let images = opened.map_or_else(|_| Vec::new(), |data| readable_images(&*data.dataset));
        if images.len() == IMAGES {
            return Ok(Self { images, kind: "training" });
        }
        let preprocess = config.preprocess()?;
        let (height, width) = (preprocess.crop_height, preprocess.crop_width);
        let made_up = |index: usize| {
            let values = 0..height * width * preprocess.channels;
            let pixels = values.map(|value| (value * (index + 3) / 2) as u8).collect();
            Image::from_pixels(height, width, preprocess.channels, pixels)
        };
        let images = (0..IMAGES).map(made_up).collect::<lejepa_data::Result<_>>()?;
        Ok(Self { images, kind: "made-up" })
    }
}

/// The first images that can be read; with few images, some more than once.
fn readable_images(dataset: &dyn Dataset) -> Vec<Image> {
    let attempts = (0..4 * IMAGES).map(|index| index % dataset.len());
    attempts.filter_map(|index| dataset.image(index).ok()).take(IMAGES).collect()
}

/// The exported encoder in full precision, opened for each of its sizes.
pub(super) struct Comparison {
    encoders: Vec<Encoder>,
}

/// What less precision costs.
pub(super) struct Cost {
    pub(super) mean_cosine: f32,
    pub(super) smallest_cosine: f32,
    pub(super) images_per_second: f64,
    pub(super) full_images_per_second: f64,
}

impl Comparison {
    pub(super) fn open(opener: &EncoderBuilder, bytes: &[u8]) -> Result<Self> {
        let name = "the exported encoder";
        let first = opener.open_bytes(name, bytes)?;
        let sizes = first.card().map(|card| card.sizes.clone()).unwrap_or_default();
        let mut encoders = vec![first];
        for size in sizes.iter().skip(1) {
            encoders.push(opener.clone().size(size.height, size.width).open_bytes(name, bytes)?);
        }
        Ok(Self { encoders })
    }

    /// The largest difference of any value, over all sizes; NaN if there is one.
    pub(super) fn with_candle(&self, model: &Model, images: &SampleImages) -> Result<f32> {
        // `f32::max` would pass over a NaN.
        let larger = |largest: f32, next: f32| if next.is_nan() || next > largest { next } else { largest };
        let mut largest = 0.;
        for encoder in &self.encoders {
            let preprocess = encoder.preprocess();
            let shape = (1, preprocess.channels, preprocess.crop_height, preprocess.crop_width);
            let exported = encoder.embed(&images.images)?;
            for (image, row) in images.images.iter().zip(exported.rows()) {
                let pixels = Tensor::from_vec(preprocess.apply(image)?, shape, &Device::Cpu)?;
                let expected = model.encoder().forward(&pixels, &Pass::eval())?.flatten_all()?;
                let expected: Vec<f32> = expected.to_vec1()?;
                let differences = expected.iter().zip(row).map(|(left, right)| (left - right).abs());
                largest = differences.fold(largest, larger);
            }
        }
        Ok(largest)
    }

    /// Against a file of less precision, on the default size.
    pub(super) fn with_precision(
        &self,
        opener: &EncoderBuilder,
        coarse: &[u8],
        images: &SampleImages,
    ) -> Result<Cost> {
        let coarse = opener.open_bytes("the exported encoder", coarse)?;
        let full = &self.encoders[0];
        let pixels = prepared(full, images)?;
        let (mut best, mut best_full) = (Duration::MAX, Duration::MAX);
        let (mut of_coarse, mut of_full) = (Array2::zeros((0, 0)), Array2::zeros((0, 0)));
        for _ in 0..TRIES {
            let clock = Instant::now();
            of_coarse = coarse.embed_pixels(IMAGES, &pixels)?;
            best = best.min(clock.elapsed());
            let clock = Instant::now();
            of_full = full.embed_pixels(IMAGES, &pixels)?;
            best_full = best_full.min(clock.elapsed());
        }
        let cosines: Vec<f32> = of_coarse
            .rows()
            .into_iter()
            .zip(of_full.rows())
            .map(|(left, right)| left.dot(&right) / (left.dot(&left) * right.dot(&right)).sqrt())
            .collect();
        let speed = |duration: Duration| IMAGES as f64 / duration.as_secs_f64();
        Ok(Cost {
            mean_cosine: cosines.iter().sum::<f32>() / cosines.len() as f32,
            smallest_cosine: cosines.iter().copied().fold(f32::INFINITY, f32::min),
            images_per_second: speed(best),
            full_images_per_second: speed(best_full),
        })
    }
}

/// `(images, channels, height, width)`: what is timed is the encoder alone.
fn prepared(encoder: &Encoder, images: &SampleImages) -> Result<Vec<f32>> {
    let mut pixels = Vec::new();
    for image in &images.images {
        pixels.extend(encoder.preprocess().apply(image)?);
    }
    Ok(pixels)
}
