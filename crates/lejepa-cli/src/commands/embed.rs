//! `lejepa embed`

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lejepa_data::{BrokenImage, Output, write_atomically};
use lejepa_eval::{Extraction, FeatureFormat, ImageList};

use crate::encoder_arguments::EncoderArguments;
use crate::source::SourceOptions;
use crate::{interrupt, output, progress};

/// Compute a vector for every image and write them to a file
///
/// Stopped by Ctrl-C or otherwise, the same command goes on where it was.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Image files, and folders or files that hold images in any form that `lejepa data inspect` knows
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    /// File of `lejepa export`, or an ONNX encoder of another project with --preprocess
    #[arg(long, value_name = "FILE")]
    encoder: PathBuf,

    /// File to write: .npy or .safetensors with a .csv of ids and labels beside it, or .parquet
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// What to compute
    #[arg(long, value_name = "NAME", default_value = "embedding", value_parser = vectors())]
    output: Output,

    /// Scale vectors to length one
    #[arg(long)]
    normalise: bool,

    #[command(flatten)]
    options: SourceOptions,

    #[command(flatten)]
    computing: EncoderArguments,
}

/// Outputs that are one vector per image.
fn vectors() -> impl TypedValueParser<Value = Output> {
    let names = Output::ALL.into_iter().filter(|output| output.is_vector()).map(Output::name);
    PossibleValuesParser::new(names).try_map(|typed| Output::named(&typed).ok_or("no such output"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let format = FeatureFormat::of(&arguments.out)?;
    let mut opener = arguments.computing.opener()?;
    if arguments.normalise {
        opener = opener.normalised();
    }
    let encoder = opener.open(&arguments.encoder)?;
    let sources: Vec<_> = arguments.paths.iter().map(|path| arguments.options.config(path)).collect();
    let images = ImageList::open(&sources)?;
    images.notes().for_each(|note| eprintln!("note: {note}"));

    interrupt::listen()?;
    let clock = Instant::now();
    let bar = progress::bar(images.len() as u64);
    let parts = beside(&arguments.out, "parts");
    let extraction = Extraction { encoder: &encoder, output: arguments.output, images: &images };
    let extracted = extraction.run(&parts, &mut |done| {
        bar.inc(done as u64);
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    bar.finish_and_clear();
    let Some(features) = extracted else {
        eprintln!("stopped; the same command goes on from {}", parts.display());
        return Ok(ExitCode::from(interrupt::EXIT_CODE));
    };
    let report = beside(&arguments.out, "broken.jsonl");
    if features.indices.is_empty() {
        match features.broken.first() {
            Some(BrokenImage { name, reason }) => {
                bail!("none of the images can be read, such as {name}: {reason}")
            }
            None => bail!("there are no images"),
        }
    }
    format.write(&arguments.out, &features, &images)?;
    write_broken(&report, &features.broken)?;
    // All that is in there is in the file now.
    std::fs::remove_dir_all(&parts)?;
    // Those of an earlier, stopped run took no time now.
    let speed = encoder.statistics().images as f64 / clock.elapsed().as_secs_f64();
    eprintln!(
        "{} images, {} dimensions in {} ({speed:.0} images/s)",
        features.indices.len(),
        features.dim,
        progress::duration(clock.elapsed()),
    );
    output::line(arguments.out.display());
    Ok(ExitCode::SUCCESS)
}

/// `features.npy` to `features.npy.parts`.
fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Names the images that were left out; a list of an earlier time goes away if there are none.
fn write_broken(path: &Path, broken: &[BrokenImage]) -> Result<()> {
    if broken.is_empty() {
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        };
    }
    let lines = broken.iter().map(serde_json::to_string).collect::<serde_json::Result<Vec<_>>>()?;
    write_atomically(path, |file| writeln!(file, "{}", lines.join("\n")))?;
    eprintln!("note: {} images cannot be read and were left out, see {}", broken.len(), path.display());
    Ok(())
}
