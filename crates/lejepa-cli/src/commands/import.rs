//! `lejepa import`

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use lejepa_embed::InputSize;
use lejepa_model::{FoundPositions, ImageSize};
use lejepa_train::{Override, TrainConfig};

use crate::encoder_arguments::size;
use crate::output;
use crate::output::say;

/// Make a run folder of weights that were trained elsewhere
///
/// The file is a safetensors state dict with timm's names, or DINOv2's own. The run can be exported,
/// evaluated, or trained further. Its preprocessing is ImageNet's unless --set changes it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// State dict, a safetensors file
    weights: PathBuf,

    /// Architecture of the weights, such as vit_small_patch14_reg4_dinov2
    #[arg(long, value_name = "NAME")]
    arch: String,

    /// Image size, such as 224 or 64x256 (height first); positions are resampled [default: the architecture's own]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<InputSize>,

    /// Rows and columns of patches of the weights' position embedding, such as 4x16 [default: those of the
    /// architecture's own size or of --size, whichever has as many]
    #[arg(long, value_name = "GRID", value_parser = size)]
    grid: Option<InputSize>,

    /// Run folder
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,

    /// Change any key of the recipe, such as preprocess.mean=[0.5,0.5,0.5]
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let change = |key: &str, value| Override { key: key.into(), value: Some(value) };
    let mut overrides = vec![change("encoder.arch", arguments.arch.clone().into())];
    if let Some(InputSize { height, width }) = arguments.size {
        let side = |pixels: usize| i64::try_from(pixels).map(toml::Value::from);
        overrides.push(change("encoder.image_size", vec![side(height)?, side(width)?].into()));
    }
    for typed in &arguments.set {
        overrides.push(Override::parse(typed)?);
    }
    let config = TrainConfig::load(None, &overrides)?;
    let grid = arguments.grid.map(|InputSize { height, width }| ImageSize { height, width });
    let import = lejepa_train::import(&config, &arguments.weights, grid, &arguments.out)?;
    if !import.dropped.is_empty() {
        say!("note: left out: {}", left_out(&import.dropped));
    }
    let size = config.encoder.resolve()?.image_size();
    match import.positions {
        Some(FoundPositions { grid, resampled: true }) => {
            say!("note: positions resampled from a grid of {grid} for images of {size}");
        }
        Some(FoundPositions { grid, .. }) => say!("note: positions are a grid of {grid}"),
        None => {}
    }
    say!("{}: {:.2} M parameters, images of {size}", arguments.arch, import.parameters as f64 / 1e6);
    output::line(arguments.out.display());
    Ok(ExitCode::SUCCESS)
}

/// Names, with PyTorch's counters in one: a ResNet has dozens.
fn left_out(dropped: &BTreeSet<String>) -> String {
    let is_counter = |name: &&String| name.ends_with(".num_batches_tracked");
    let counters = dropped.iter().filter(is_counter).count();
    let mut names: Vec<String> = dropped.iter().filter(|name| !is_counter(name)).cloned().collect();
    if counters > 0 {
        names.push(format!("{counters} counters num_batches_tracked"));
    }
    names.join(", ")
}
