//! `lejepa import`

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use lejepa_train::{Override, TrainConfig};

use crate::output;

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

    /// Pixels of an image side; positions are resampled [default: the architecture's own]
    #[arg(long, value_name = "NUMBER")]
    size: Option<i64>,

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
    if let Some(size) = arguments.size {
        overrides.push(change("encoder.image_size", size.into()));
    }
    for typed in &arguments.set {
        overrides.push(Override::parse(typed)?);
    }
    let config = TrainConfig::load(None, &overrides)?;
    let import = lejepa_train::import(&config, &arguments.weights, &arguments.out)?;
    if !import.dropped.is_empty() {
        eprintln!("note: left out: {}", left_out(&import.dropped));
    }
    let size = config.encoder.resolve()?.image_size();
    if let Some(from) = import.resampled_from {
        eprintln!("note: positions resampled from a grid of {from} for images of {size}");
    }
    eprintln!("{}: {:.2} M parameters, images of {size}", arguments.arch, import.parameters as f64 / 1e6);
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
