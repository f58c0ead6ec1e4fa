//! `lejepa export`

mod comparison;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use candle_core::{Device, Tensor};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lejepa_data::{Claim, InputSize, Job, Output, Overwrite, Precision, SelfTest};
use lejepa_embed::{EncoderBuilder, FileInfo, Preprocess};
use lejepa_model::ImageSize;
use lejepa_train::{Checkpoint, CheckpointFolder, Model};

use self::comparison::{Comparison, SampleImages};
use crate::encoder_arguments::{RuntimeArguments, size};
use crate::encoder_file::{self, Content, Origin, Place};
use crate::hub_file::Description;
use crate::output::{self, say};
use crate::targets::TargetArguments;
use crate::written_encoder::WrittenEncoder;

/// Write the encoder of a run as one ONNX file that carries its preprocessing, or its weights for timm
///
/// The file holds a self-test and everything that is known of the training; a preprocessor_config.json
/// for other tools is written beside it, or STEM.preprocessor_config.json if there is one of another encoder.
/// More than 2 GB of weights are in a second file beside it, STEM.HASH.weights.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Run folder of `lejepa train` or `lejepa import`
    run: PathBuf,

    /// File to write; one that ends in .safetensors gets the bare weights, under timm's names
    #[arg(long, value_name = "FILE", default_value = "encoder.onnx")]
    out: PathBuf,

    #[command(flatten)]
    targets: TargetArguments,

    /// Image size, such as 224 or 224x448 (height first); several may be given, the first is the default
    /// one [default: that of the training]
    #[arg(long = "size", value_name = "SIZE", value_parser = size)]
    sizes: Vec<InputSize>,

    /// What the file computes; an output costs nothing until it is asked for [default: all that the
    /// encoder has, without the projection]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = output_names())]
    outputs: Vec<Output>,

    /// f16 halves the file; int8 quarters it and is faster; what that costs is measured and shown
    #[arg(long, value_name = "NAME", default_value = "f32", value_parser = precision_names())]
    precision: Precision,

    /// Licence of the weights, for the card
    #[arg(long, value_name = "TEXT", default_value = "")]
    licence: String,

    /// Take the checkpoint of lowest loss instead of the newest
    #[arg(long)]
    best: bool,

    /// Take the averaged weights of a run with `averaging`
    #[arg(long)]
    averaged: bool,

    /// Bytes of weights that are kept inside of the file; more are in a second one beside it
    #[arg(long, value_name = "BYTES", hide = true, default_value_t = lejepa_onnx::LARGEST_INSIDE)]
    most_inside: u64,

    #[command(flatten)]
    runtime: RuntimeArguments,
}

/// Candle and ONNX Runtime may not differ by more; features are of order one.
const TOLERANCE: f32 = 1e-4;
/// Less than this is worth a warning.
const GOOD_COSINE: f32 = 0.99;
/// Less than this is no matter of precision: something is wrong.
const LEAST_COSINE: f32 = 0.5;

fn output_names() -> impl TypedValueParser<Value = Output> {
    PossibleValuesParser::new(Output::ALL.map(Output::name))
        .try_map(|typed| Output::named(&typed).ok_or("no such output"))
}

fn precision_names() -> impl TypedValueParser<Value = Precision> {
    PossibleValuesParser::new(Precision::ALL.map(Precision::name)).try_map(|typed| {
        Precision::ALL.into_iter().find(|precision| precision.name() == typed).ok_or("no such precision")
    })
}

impl Arguments {
    fn checkpoint(&self) -> Result<Checkpoint> {
        match CheckpointFolder::of(&self.run).best()? {
            Some(best) if self.best => Ok(Checkpoint::read_any(&best.path)?),
            _ => Ok(Checkpoint::require(&self.run)?),
        }
    }

    fn model(&self, checkpoint: &Checkpoint) -> Result<Model> {
        let model = checkpoint.model(&Device::Cpu)?;
        if !self.averaged {
            return Ok(model);
        }
        let average = checkpoint.average(&model, &Device::Cpu)?;
        let average = average.ok_or_else(|| anyhow!("the run has no `averaging`: {}", self.run.display()))?;
        Ok(average.into_model())
    }

    fn weights(&self, checkpoint: &Checkpoint) -> Result<BTreeMap<String, Tensor>> {
        let weights = match self.averaged {
            true => checkpoint.averaged_encoder_weights(),
            false => checkpoint.encoder_weights(),
        };
        if weights.is_empty() {
            let missing = if self.averaged { "the run has no `averaging`" } else { "no encoder in the run" };
            bail!("{missing}: {}", self.run.display());
        }
        Ok(weights.into_iter().collect())
    }

    /// The right to write the file: where an export of the same run lies, that is replaced. Bare weights do not say
    /// where they come from; the same ones once more are no loss.
    fn claim(&self, checkpoint: &Checkpoint) -> Result<Claim> {
        let (out, job) = (std::slice::from_ref(&self.out), Job::new("export", [self.run.as_path()]));
        Ok(match self.out.extension().is_some_and(|extension| extension == "safetensors") {
            true => Claim::of_begun(out, job, self.targets.overwrite())?,
            false if is_of_run(&self.out, checkpoint) => Claim::of_files(out, job, Overwrite::Always)?,
            false => Claim::of_files(out, job, self.targets.overwrite())?,
        })
    }

    /// Bare weights are written as they are.
    fn refuse_for_weights(&self) -> Result<()> {
        let given = [
            ("--size", !self.sizes.is_empty()),
            ("--outputs", !self.outputs.is_empty()),
            ("--precision", self.precision != Precision::F32),
            ("--licence", !self.licence.is_empty()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => bail!("{option} is for .onnx files, not for: {}", self.out.display()),
            None => Ok(()),
        }
    }

    /// What the file is to hold.
    fn content(&self, model: &Model) -> Result<Content> {
        let shape = model.encoder().shape();
        for &InputSize { height, width } in &self.sizes {
            shape.check_image_size("--size", ImageSize { height, width })?;
        }
        let mut outputs = self.outputs.clone();
        if outputs.is_empty() {
            outputs = lejepa_onnx::available_outputs(&shape);
        }
        if !outputs.contains(&Output::Embedding) {
            outputs.insert(0, Output::Embedding);
        }
        let (sizes, licence) = (self.sizes.clone(), self.licence.clone());
        Ok(Content { sizes, outputs, precision: self.precision, licence })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let checkpoint = arguments.checkpoint()?;
    note_version(&checkpoint);
    let claim = arguments.claim(&checkpoint)?;
    if arguments.out.extension().is_some_and(|extension| extension == "safetensors") {
        arguments.refuse_for_weights()?;
        return write_weights(arguments.weights(&checkpoint)?, &claim, &arguments.out);
    }
    let model = arguments.model(&checkpoint)?;
    let checkpoint = checkpoint.without_tensors();
    let config = &checkpoint.config;
    let origin = Origin {
        config,
        step: checkpoint.step,
        data_fingerprint: &checkpoint.data_fingerprint,
        seen: checkpoint.seen.as_ref(),
    };
    let content = arguments.content(&model)?;
    let place = Place { out: &arguments.out, most_inside: arguments.most_inside };
    let mut written = encoder_file::write(&model, &origin, &content, &place)?;
    let about = format!(
        "{} after {} steps, {} dimensions, {:.1} MB",
        config.encoder.arch,
        checkpoint.step,
        model.encoder().dim(),
        written.megabytes(),
    );
    let opener = arguments.runtime.opener().trusted();
    compare(&about, &written, &model, &SampleImages::of(config)?, (arguments.precision, &opener))?;
    drop(model);
    let preprocess = add_self_test(&mut written, &opener, content.precision)?;

    // Refused before anything is in its place.
    let beside = Description::prepare(&arguments.out, &preprocess.to_hub(), arguments.targets.overwrite())?;
    let (bytes, weights) = written.place_weights(&arguments.out)?;
    claim.write(&arguments.out, &bytes)?;
    if let Some(weights) = weights {
        say!("its weights, too many for one ONNX file, to be kept beside it: {}", weights.display());
        for earlier in WrittenEncoder::earlier_weights(&arguments.out, &weights) {
            say!("note: of an earlier export, remove it if no other file needs it: {}", earlier.display());
        }
    }
    say!("how images are prepared, for other tools: {}", beside.write()?.display());
    output::line(arguments.out.display());
    Ok(ExitCode::SUCCESS)
}

/// Whether a file is an export of the same run, at whatever step and with whatever options.
fn is_of_run(path: &Path, checkpoint: &Checkpoint) -> bool {
    /// Keys that may change while a run goes on.
    const LENGTH: [(&str, &str); 6] = [
        ("train", "epochs"),
        ("train", "steps"),
        ("train", "checkpoint_every"),
        ("train", "checkpoint_minutes"),
        ("train", "keep"),
        ("data", "workers"),
    ];
    let Ok(FileInfo { card, .. }) = FileInfo::read(path) else { return false };
    let Ok(own) = serde_json::to_value(&checkpoint.config) else { return false };
    let [found, own] = [card.config, own].map(|mut config| {
        if let Some(config) = config.as_object_mut() {
            config.remove("watch");
            for (table, key) in LENGTH {
                config.get_mut(table).and_then(|table| table.as_object_mut()).map(|table| table.remove(key));
            }
        }
        config
    });
    found == own && card.data_fingerprint == checkpoint.data_fingerprint
}

/// Compares the file with what Candle computes: value by value in full precision, by the angle in less.
fn compare(
    about: &str,
    written: &WrittenEncoder,
    model: &Model,
    images: &SampleImages,
    (precision, opener): (Precision, &EncoderBuilder),
) -> Result<()> {
    let comparison = Comparison::with_candle(written, opener, model, images)?;
    if precision == Precision::F32 {
        let difference = comparison.largest_difference;
        if difference.is_nan() || difference > TOLERANCE {
            bail!(
                "ONNX Runtime and Candle differ by {difference:.1e} on {images}, more than: {TOLERANCE:.0e}"
            );
        }
        say!("{about}; differs from Candle by {difference:.1e} on {images}");
        return Ok(());
    }
    let Comparison { mean_cosine, smallest_cosine, images_per_second, .. } = comparison;
    if mean_cosine.is_nan() || mean_cosine < LEAST_COSINE {
        bail!("ONNX Runtime computes something else than Candle on {images}, cosine: {mean_cosine:.3}");
    }
    let name = precision.name();
    say!(
        "{name}: {about}, cosine to f32 {mean_cosine:.5} (at least {smallest_cosine:.5}) on {images}, \
         {images_per_second:.0} images/s"
    );
    if mean_cosine < GOOD_COSINE {
        say!("warning: this encoder loses much in {name}, think of f16");
    }
    Ok(())
}

/// Gives the file a picture and what it makes of it, tries that out once, and says how images are prepared.
fn add_self_test(
    written: &mut WrittenEncoder,
    opener: &EncoderBuilder,
    precision: Precision,
) -> Result<Preprocess> {
    let encoder = written.open(opener)?;
    let preprocess = encoder.preprocess().clone();
    let picture = SelfTest::picture(preprocess.channels)?;
    let embedding = encoder.embed(std::slice::from_ref(&picture))?.into_iter().collect();
    drop(encoder);
    written.add_self_test(&SelfTest::new(&picture, embedding, precision))?;
    let result = written.open(opener)?.self_test()?;
    if !result.passed() {
        bail!("the encoder does not pass its own self-test: it differs by {:.1e}", result.drift);
    }
    Ok(preprocess)
}

/// Says what is not understood of a checkpoint of another version.
fn note_version(checkpoint: &Checkpoint) {
    if !checkpoint.is_of_this_format {
        say!("note: the checkpoint is of another version: whether it is undamaged cannot be told");
    }
    if !checkpoint.left_out.is_empty() {
        let keys = checkpoint.left_out.join(", ");
        say!("note: keys of its configuration that this version does not know are left out: {keys}");
    }
}

/// The weights alone; nothing is run, and no configuration is needed.
fn write_weights(weights: BTreeMap<String, Tensor>, claim: &Claim, path: &Path) -> Result<ExitCode> {
    let weights = weights.iter().map(|(name, tensor)| (name.as_str(), tensor));
    let bytes = lejepa_train::encode_weights(weights)?;
    claim.write(path, &bytes)?;
    output::line(path.display());
    Ok(ExitCode::SUCCESS)
}
