//! What an exported encoder computes beside what Candle computes.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use candle_core::{Device, Tensor};
use lejepa_data::Image;
use lejepa_embed::{Encoder, EncoderBuilder, Preprocess};
use lejepa_model::Pass;
use lejepa_train::{Model, TrainConfig};

use crate::written_encoder::WrittenEncoder;

/// How many images are compared.
const IMAGES: usize = 17;
/// How often a speed is measured; the best one counts.
const TRIES: usize = 3;
/// Encoders that take longer are measured less often.
const PATIENCE: Duration = Duration::from_secs(5);

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
        let found = config.data.first_images(IMAGES);
        if !found.is_empty() {
            // With few images, some more than once.
            let images = found.iter().cycle().take(IMAGES).cloned().collect();
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

/// How far an exported encoder is from the one that it is of.
pub(super) struct Comparison {
    /// Of any value, over all sizes; NaN if there is one.
    pub(super) largest_difference: f32,
    pub(super) mean_cosine: f32,
    pub(super) smallest_cosine: f32,
    /// Of the default size.
    pub(super) images_per_second: f64,
}

impl Comparison {
    /// Opens the file for one of its sizes after the other.
    pub(super) fn with_candle(
        written: &WrittenEncoder,
        opener: &EncoderBuilder,
        model: &Model,
        images: &SampleImages,
    ) -> Result<Self> {
        let first = written.open(opener)?;
        let images_per_second = speed(&first, images)?;
        let sizes = first.card().map(|card| card.sizes.clone()).unwrap_or_default();
        let (mut differences, mut cosines) = (Vec::new(), Vec::new());
        let mut add = |encoder: &Encoder| -> Result<()> {
            let exported = encoder.embed(&images.images)?;
            for (image, row) in images.images.iter().zip(exported.rows()) {
                let expected = expected(model, encoder.preprocess(), image)?;
                let pairs = || expected.iter().zip(&row);
                differences.extend(pairs().map(|(left, right)| (left - right).abs()));
                let product = pairs().map(|(left, right)| left * right).sum::<f32>();
                let length = expected.iter().map(|value| value * value).sum::<f32>() * row.dot(&row);
                cosines.push(product / length.sqrt());
            }
            Ok(())
        };
        add(&first)?;
        drop(first);
        for size in sizes.iter().skip(1) {
            add(&written.open(&opener.clone().size(size.height, size.width))?)?;
        }
        // `f32::max` would pass over a NaN.
        let larger = |largest: f32, next: f32| if next.is_nan() || next > largest { next } else { largest };
        Ok(Self {
            largest_difference: differences.into_iter().fold(0., larger),
            mean_cosine: cosines.iter().sum::<f32>() / cosines.len() as f32,
            smallest_cosine: cosines.iter().copied().fold(f32::INFINITY, f32::min),
            images_per_second,
        })
    }
}

/// What Candle computes.
fn expected(model: &Model, preprocess: &Preprocess, image: &Image) -> Result<Vec<f32>> {
    let shape = (1, preprocess.channels, preprocess.crop_height, preprocess.crop_width);
    let pixels = Tensor::from_vec(preprocess.apply(image)?, shape, &Device::Cpu)?;
    Ok(model.encoder().forward(&pixels, &Pass::eval())?.flatten_all()?.to_vec1()?)
}

/// Images in a second, of the encoder alone.
fn speed(encoder: &Encoder, images: &SampleImages) -> Result<f64> {
    let mut pixels = Vec::new();
    for image in &images.images {
        pixels.extend(encoder.preprocess().apply(image)?);
    }
    let (start, mut best) = (Instant::now(), Duration::MAX);
    for _ in 0..TRIES {
        let clock = Instant::now();
        encoder.embed_pixels(IMAGES, &pixels)?;
        best = best.min(clock.elapsed());
        if start.elapsed() > PATIENCE {
            break;
        }
    }
    Ok(IMAGES as f64 / best.as_secs_f64())
}
