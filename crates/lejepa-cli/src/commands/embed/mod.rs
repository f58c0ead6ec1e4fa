//! `lejepa embed`

mod shard;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::ProgressBar;
use lejepa_data::{BrokenImage, Claim, Fingerprinter, Job, Output, printable_name};
use lejepa_embed::{Encoder, EncoderBuilder};
use lejepa_eval::features::{Extracted, Extraction, FeatureFile, FeaturePrecision, Key, Share};
use lejepa_eval::sets::ImageList;
use serde_json::json;

use crate::encoder_arguments::EncoderArguments;
use crate::output::say;
use crate::source::SourceOptions;
use crate::targets::TargetArguments;
use crate::{cache_folder, interrupt, output, progress};

/// Compute a vector for every image and write them to a file
///
/// Stopped by Ctrl-C or otherwise, the same command goes on where it was. Many machines share the work with
/// --shard; the same command with --merge then writes the file.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Image files, and folders or files that hold images in any form that `lejepa data inspect` knows
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    /// File of `lejepa export`, or an ONNX encoder of another project with a preprocessor_config.json beside it or
    /// --preprocess
    #[arg(long, value_name = "FILE")]
    encoder: PathBuf,

    /// File to write: .npy or .safetensors with a .csv of ids and labels beside it, or .parquet
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    #[command(flatten)]
    targets: TargetArguments,

    /// What to compute
    #[arg(long, value_name = "NAME", default_value = "embedding", value_parser = vectors())]
    output: Output,

    /// Scale vectors to length one
    #[arg(long)]
    normalise: bool,

    /// How the file's numbers are stored
    #[arg(long, value_name = "NAME", default_value = "f32", value_parser = precisions())]
    precision: FeaturePrecision,

    /// Compute one of several equal shares into FILE.parts, such as 3/16; `auto` takes the number of this task
    /// of a SLURM array, auto/16 that of this pod of an indexed Kubernetes job with 16 of them
    #[arg(long, value_name = "SHARE", value_parser = shard::choice)]
    shard: Option<shard::Choice>,

    /// Write the file from the shares in FILE.parts, after making sure that all are there
    #[arg(long, conflicts_with = "shard")]
    merge: bool,

    /// Print what was done as JSON instead of the file's name
    #[arg(long)]
    json: bool,

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

fn precisions() -> impl TypedValueParser<Value = FeaturePrecision> {
    PossibleValuesParser::new(FeaturePrecision::ALL.map(FeaturePrecision::name))
        .try_map(|typed| FeaturePrecision::named(&typed).ok_or("no such precision"))
}

impl Arguments {
    /// What a result is known by: files of one stem share a table, but it is of one of them.
    fn job(&self, key: &Key) -> Result<Job> {
        let name = self.out.file_name().unwrap_or_default().to_string_lossy();
        let content = format!("{} in {} as {name}", key.name()?, self.precision.name());
        Ok(Job::new("embed", []).with_content(&content))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let file = FeatureFile::of(&arguments.out, arguments.precision)?;
    let share = match (&arguments.shard, arguments.merge) {
        (Some(choice), _) => Share::Shard(choice.shard()?),
        (None, true) => Share::Merge,
        (None, false) => Share::Alone,
    };
    let (parts, report) = (beside(&arguments.out, "parts"), beside(&arguments.out, "broken.jsonl"));
    let mut written = file.paths(&arguments.out);
    written.push(report.clone());
    // What all shares make together is written, and locked, by the merge.
    let own = if matches!(share, Share::Shard(_)) { &[][..] } else { &written };
    let mut claim = Claim::of_begun(own, Job::new("embed", []), arguments.targets.overwrite())?;
    let normalised = |opener: EncoderBuilder| if arguments.normalise { opener.normalised() } else { opener };
    let encoder = arguments.computing.open(&arguments.encoder, normalised)?;
    let sources: Vec<_> = arguments.paths.iter().map(|path| arguments.options.config(path)).collect();
    let images = ImageList::open(&sources)?;
    images.notes().for_each(|note| say!("note: {note}"));

    interrupt::listen()?;
    let clock = Instant::now();
    if !identify(&images)? {
        say!("stopped before anything was computed");
        return Ok(interrupt::exit_code());
    }
    let extraction = Extraction { encoder: &encoder, output: arguments.output, images: &images };
    let key = extraction.key()?;
    claim.become_job(arguments.job(&key)?);
    // What a stopped run has begun to write is looked at when it is written.
    if !Extraction::is_begun(&parts) {
        let is_intact = |path: &PathBuf| path.symlink_metadata().is_err() || claim.owns(path);
        if file.is_written(&arguments.out, &key) && written.iter().all(is_intact) {
            say!("nothing to do: the same vectors were written before");
            tell(
                arguments,
                &arguments.out,
                &json!({ "out": arguments.out, "key": key.name()?, "computed": 0 }),
            );
            return Ok(ExitCode::SUCCESS);
        }
        written.iter().try_for_each(|path| claim.check(path))?;
    }
    let mut workplace = extraction.begin(&parts, share)?;
    let range = workplace.range();
    let bar = progress::bar(range.len() as u64);
    let flow = workplace.compute(&mut |done| {
        bar.inc(done as u64);
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    bar.finish_and_clear();
    if flow.is_break() {
        say!("stopped; the same command goes on from {}", parts.display());
        return Ok(interrupt::exit_code());
    }
    if let Share::Shard(shard) = share {
        say!(
            "share {shard}, {} images in {}; --merge in place of --shard writes the file when all are there",
            range.len(),
            speed(&encoder, clock),
        );
        let summary = json!({
            "shard": shard.to_string(), "images": [range.start, range.end], "parts": parts,
            "encoder": encoder.fingerprint(), "seconds": clock.elapsed().as_secs_f64(),
        });
        tell(arguments, &parts, &summary);
        return Ok(ExitCode::SUCCESS);
    }
    let features = workplace.collect()?;
    if features.indices.is_empty() {
        // Nothing was computed that a later run could use, which may see repaired images.
        workplace.clear()?;
        return Err(nothing(&features));
    }
    // Shares may have been computed in other portions or on another device than this process would.
    claim.become_job(arguments.job(&features.key)?);
    file.write(&claim, &arguments.out, &features, &images)?;
    write_broken(&claim, &report, &features.broken)?;
    // All that is in there is in the file now.
    workplace.clear()?;
    let (rows, dim) = (features.indices.len(), features.dim);
    say!("{rows} images, {dim} dimensions in {}", speed(&encoder, clock));
    let summary = json!({
        "out": arguments.out, "images": rows, "dim": dim, "left_out": features.broken.len(),
        "precision": arguments.precision.name(), "encoder": encoder.fingerprint(),
        "key": features.key.name()?, "computed": encoder.statistics().images,
        "seconds": clock.elapsed().as_secs_f64(),
    });
    tell(arguments, &arguments.out, &summary);
    Ok(ExitCode::SUCCESS)
}

/// Reads the data as far as that has not been done before; `false` if it was stopped.
fn identify(images: &ImageList) -> Result<bool> {
    let mut bar = ProgressBar::hidden();
    let mut observe = |hashing| {
        progress::hashing(&mut bar, "images", hashing);
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let memory = cache_folder::features().join("hashes");
    let mut fingerprinter = Fingerprinter::default().remembering(&memory).observed(&mut observe);
    match images.identify(&mut fingerprinter) {
        Err(lejepa_eval::Error::Data(lejepa_data::Error::Stopped)) => Ok(false),
        identified => Ok(identified.map(|()| true)?),
    }
}

fn tell(arguments: &Arguments, path: &Path, summary: &serde_json::Value) {
    if arguments.json { output::line(summary) } else { output::line(path.display()) }
}

/// Images of an earlier, stopped run took no time now.
fn speed(encoder: &Encoder, clock: Instant) -> String {
    let speed = encoder.statistics().images as f64 / clock.elapsed().as_secs_f64();
    format!("{} ({speed:.0} images/s)", progress::duration(clock.elapsed()))
}

fn nothing(features: &Extracted) -> anyhow::Error {
    match features.broken.first() {
        Some(BrokenImage { name, reason }) => {
            anyhow!("none of the images can be embedded, such as {}: {reason}", printable_name(name))
        }
        None => anyhow!("there are no images"),
    }
}

/// `features.npy` to `features.npy.parts`.
fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Names the images that were left out; a list of an earlier time goes away if there are none.
fn write_broken(claim: &Claim, path: &Path, broken: &[BrokenImage]) -> Result<()> {
    if broken.is_empty() {
        return Ok(claim.remove(path)?);
    }
    let lines = broken.iter().map(serde_json::to_string).collect::<serde_json::Result<Vec<_>>>()?;
    claim.write(path, format!("{}\n", lines.join("\n")).as_bytes())?;
    say!("note: {} images cannot be embedded and were left out, see {}", broken.len(), path.display());
    Ok(())
}
