//! `lejepa gauge`

mod plot;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use candle_core::{Device, Tensor};
use clap::{Args, ValueEnum};
use lejepa_data::{Claim, Fingerprinter, Job, MatrixValues, read_matrix};
use lejepa_loss::gauge::{Gauge, Reference, Verdict};

use crate::output;
use crate::targets::{TargetArguments, marked_svg};

/// Tell whether features are healthy, collapsed or of the wrong distribution
///
/// Compares them with what an isotropic Gaussian sample of the same size would show: SIGReg, the
/// spectrum of the covariance, single slices and dimensions.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Features, one row per sample: a .npy or .safetensors file
    features: PathBuf,

    /// Which tensor of a .safetensors file, if it has several with two axes
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,

    /// Compare with an isotropic Gaussian of any mean and scale (shape), as for features of an
    /// encoder, or with the standard normal (standard), as for a projector's output
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ReferenceName::Shape)]
    reference: ReferenceName,

    /// Random directions
    #[arg(long, value_name = "NUMBER", default_value_t = Gauge::default().slices)]
    slices: usize,

    /// What draws the directions
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,

    /// Plot to draw [default: NAME.gauge.svg in the working directory, NAME being the features' name
    /// without its ending; none with --json]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    targets: TargetArguments,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Exit with 1 unless the verdict is healthy
    #[arg(long)]
    fail_unless_healthy: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "lower")]
enum ReferenceName {
    Standard,
    Shape,
}

impl Arguments {
    fn gauge(&self) -> Gauge {
        let reference = match self.reference {
            ReferenceName::Standard => Reference::Standard,
            ReferenceName::Shape => Reference::Shape,
        };
        Gauge { reference, slices: self.slices, seed: self.seed, ..Gauge::default() }
    }

    fn plot(&self) -> Option<PathBuf> {
        let stem = self.features.file_stem().unwrap_or_default().to_string_lossy();
        let beside = || PathBuf::from(format!("{stem}.gauge.svg"));
        self.out.clone().or_else(|| (!self.json).then(beside))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let path = &arguments.features;
    let plot = arguments.plot();
    let content = Fingerprinter::default().of_files(std::slice::from_ref(path))?;
    let job = Job::new("gauge", [path.as_path()]).with_content(&content);
    let claim =
        |plot: &PathBuf| Claim::of_files(std::slice::from_ref(plot), job, arguments.targets.overwrite());
    let claim = plot.as_ref().map(claim).transpose()?;
    let features = read(path, arguments.tensor.as_deref())?;
    let reading = arguments.gauge().measure(&features).with_context(|| path.display().to_string())?;
    if arguments.json {
        output::line(serde_json::to_string_pretty(&reading)?);
    } else {
        output::line(summary::text(&path.display().to_string(), &reading));
    }
    if let (Some(plot), Some(claim)) = (plot, claim) {
        claim.write(&plot, marked_svg(claim.mark(), &plot::draw(&reading)?).as_bytes())?;
        if !arguments.json {
            output::line(format_args!("\nplot: {}", plot.display()));
        }
    }
    let failed = arguments.fail_unless_healthy && reading.verdict != Verdict::Healthy;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn read(path: &Path, tensor: Option<&str>) -> Result<Tensor> {
    let matrix = read_matrix(path, tensor)?;
    let shape = (matrix.rows, matrix.columns);
    Ok(match matrix.values {
        MatrixValues::Single(values) => Tensor::from_vec(values, shape, &Device::Cpu)?,
        MatrixValues::Double(values) => Tensor::from_vec(values, shape, &Device::Cpu)?,
    })
}
