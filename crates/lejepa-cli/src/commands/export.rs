//! `lejepa export`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use candle_core::{Device, Tensor};
use clap::Args;
use lejepa_data::{Dataset, Image, Preprocess, write_atomically};
use lejepa_model::Pass;
use lejepa_train::{Checkpoint, CheckpointFolder, Model, TrainConfig};

use crate::encoder_file::{self, Origin, RuntimeArguments};
use crate::output;

/// Write the encoder of a run as one ONNX file that carries its preprocessing, or its weights for timm
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Run folder of `lejepa train` or `lejepa import`
    run: PathBuf,

    /// File to write; one that ends in .safetensors gets the bare weights, under timm's names
    #[arg(long, value_name = "FILE", default_value = "encoder.onnx")]
    out: PathBuf,

    /// Take the checkpoint of lowest loss instead of the newest
    #[arg(long)]
    best: bool,

    /// Take the averaged weights of a run with `averaging`
    #[arg(long)]
    averaged: bool,

    #[command(flatten)]
    runtime: RuntimeArguments,
}

/// Candle and ONNX Runtime may not differ by more; features are of order one.
const TOLERANCE: f32 = 1e-4;
/// How many images they are compared on.
const IMAGES: usize = 17;

impl Arguments {
    fn checkpoint(&self) -> Result<Checkpoint> {
        match CheckpointFolder::of(&self.run).best()? {
            Some(best) if self.best => Ok(Checkpoint::read(&best.path)?),
            _ => Ok(Checkpoint::require(&self.run)?),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let checkpoint = arguments.checkpoint()?;
    let mut model = checkpoint.model(&Device::Cpu)?;
    if arguments.averaged {
        let average = checkpoint.average(&model, &Device::Cpu)?;
        model = average
            .ok_or_else(|| anyhow!("the run has no `averaging`: {}", arguments.run.display()))?
            .into_model();
    }
    if arguments.out.extension().is_some_and(|extension| extension == "safetensors") {
        return write_weights(&model, &arguments.out);
    }
    let config = &checkpoint.config;
    let origin = Origin { config, step: checkpoint.step, data_fingerprint: &checkpoint.data_fingerprint };
    let bytes = encoder_file::encode(&model, &origin)?;

    let name = arguments.out.display().to_string();
    let encoder = arguments.runtime.opener().open_bytes(&name, &bytes)?;
    let (pixels, kind) = comparison_pixels(config, &config.preprocess()?)?;
    let exported: Vec<f32> = encoder.embed_pixels(IMAGES, &pixels)?.into_iter().collect();
    let difference = largest_difference(&model, &pixels, encoder.preprocess(), &exported)?;
    if difference.is_nan() || difference > TOLERANCE {
        bail!(
            "ONNX Runtime and Candle differ by {difference:.1e} on {IMAGES} {kind}, more than: {TOLERANCE:.0e}"
        );
    }
    write_atomically(&arguments.out, |file| file.write_all(&bytes))?;
    eprintln!(
        "{} after {} steps, {} dimensions, {:.1} MB; differs from Candle by {difference:.1e} on {IMAGES} {kind}",
        config.encoder.arch,
        checkpoint.step,
        encoder.dim(),
        bytes.len() as f64 / 1e6,
    );
    output::line(arguments.out.display());
    Ok(ExitCode::SUCCESS)
}

/// The weights alone; nothing is run.
fn write_weights(model: &Model, path: &Path) -> Result<ExitCode> {
    let bytes = lejepa_train::encode_weights(model.encoder_parameters())?;
    write_atomically(path, |file| file.write_all(&bytes))?;
    output::line(path.display());
    Ok(ExitCode::SUCCESS)
}

/// Training images, or made-up ones where the data is not at hand any more.
fn comparison_pixels(config: &TrainConfig, preprocess: &Preprocess) -> Result<(Vec<f32>, &'static str)> {
    let mut images =
        config.data.open(&mut Ok).map_or_else(|_| Vec::new(), |data| readable_images(&*data.dataset));
    let kind = if images.len() == IMAGES { "training images" } else { "made-up images" };
    if images.len() < IMAGES {
        images = (0..IMAGES).map(|index| made_up_image(index, preprocess)).collect::<Result<_>>()?;
    }
    let mut pixels = Vec::with_capacity(IMAGES * preprocess.pixel_count());
    for image in &images {
        pixels.extend(preprocess.apply(image)?);
    }
    Ok((pixels, kind))
}

/// The first images that can be read; with few images, some more than once.
fn readable_images(dataset: &dyn Dataset) -> Vec<Image> {
    let attempts = (0..4 * IMAGES).map(|index| index % dataset.len());
    attempts.filter_map(|index| dataset.image(index).ok()).take(IMAGES).collect()
}

fn made_up_image(index: usize, preprocess: &Preprocess) -> Result<Image> {
    let (height, width, channels) = (preprocess.crop_height, preprocess.crop_width, preprocess.channels);
    let pixels = (0..height * width * channels).map(|value| (value * (index + 3) / 2) as u8).collect();
    Ok(Image::from_pixels(height, width, channels, pixels)?)
}

fn largest_difference(
    model: &Model,
    pixels: &[f32],
    preprocess: &Preprocess,
    exported: &[f32],
) -> Result<f32> {
    let shape = (IMAGES, preprocess.channels, preprocess.crop_height, preprocess.crop_width);
    let pixels = Tensor::from_slice(pixels, shape, &Device::Cpu)?;
    let expected: Vec<f32> = model.encoder().forward(&pixels, &Pass::eval())?.flatten_all()?.to_vec1()?;
    // `f32::max` would pass over a NaN.
    let larger = |largest: f32, next: f32| if next.is_nan() || next > largest { next } else { largest };
    Ok(expected.iter().zip(exported).map(|(left, right)| (left - right).abs()).fold(0., larger))
}
