//! How encoders are opened, as it is typed.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use lejepa_embed::{Encoder, EncoderBuilder, Error, FileLimits, ForeignEncoder, InputSize, Provider};

use crate::hub_file;
use crate::output::say;

/// What every command that uses ONNX Runtime takes.
#[derive(Debug, Args)]
pub(crate) struct RuntimeArguments {
    /// ONNX Runtime's shared library, instead of looking for it
    #[arg(long, value_name = "FILE")]
    pub(crate) onnxruntime: Option<PathBuf>,
}

impl RuntimeArguments {
    /// How the command opens encoders of anybody.
    pub(crate) fn opener(&self) -> EncoderBuilder {
        let opener = Encoder::builder().limits(FileLimits::strict());
        match &self.onnxruntime {
            Some(library) => opener.library(library),
            None => opener,
        }
    }
}

/// What every command that opens encoders of others takes.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Open the encoder without limits of its nodes, loops, input, time and memory: for files whose maker
    /// you trust
    #[arg(long)]
    trusted: bool,
}

impl TrustArguments {
    /// The same opener, with or without limits.
    pub(crate) fn apply(&self, opener: EncoderBuilder) -> EncoderBuilder {
        if self.trusted { opener.trusted() } else { opener }
    }
}

/// What every command that computes with encoders takes.
#[derive(Debug, Args)]
pub(crate) struct ComputingArguments {
    /// Where to compute: cpu or cuda:N (with ONNX Runtime's build for CUDA)
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = provider)]
    device: Provider,

    /// Image size, one of those that the encoder was exported for [default: the first]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<InputSize>,

    /// Images of one inference
    #[arg(long, value_name = "IMAGES")]
    batch: Option<usize>,

    #[command(flatten)]
    trust: TrustArguments,
}

/// What every command that computes embeddings takes.
#[derive(Debug, Args)]
pub(crate) struct EncoderArguments {
    #[command(flatten)]
    computing: ComputingArguments,

    /// For an encoder of another project: the preprocessor_config.json that says how images are prepared
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    preprocess: Option<PathBuf>,

    /// Which output of such an encoder is the embedding, if it has several
    #[arg(long, value_name = "NAME")]
    embedding: Option<String>,

    #[command(flatten)]
    pub(crate) runtime: RuntimeArguments,
}

impl ComputingArguments {
    /// How the command opens an encoder that describes itself.
    pub(crate) fn opener(&self, runtime: &RuntimeArguments) -> EncoderBuilder {
        let mut opener = self.trust.apply(runtime.opener()).provider(self.device).throughput();
        if let Some(InputSize { height, width }) = self.size {
            opener = opener.size(height, width);
        }
        if let Some(batch) = self.batch {
            opener = opener.batch(batch);
        }
        opener
    }

    /// The same for large images, of which the processor computes one at a time if nothing else is said: the
    /// attention between all pairs of their patches takes much memory.
    pub(crate) fn frame_opener(&self, runtime: &RuntimeArguments) -> EncoderBuilder {
        let opener = self.opener(runtime);
        if self.batch.is_none() && self.device == Provider::Cpu { opener.batch(1) } else { opener }
    }
}

impl EncoderArguments {
    /// Opens a file that describes itself, or one of another project with --preprocess or the description beside
    /// it. `finish` says what else the command wants.
    pub(crate) fn open(
        &self,
        path: &Path,
        finish: impl Fn(EncoderBuilder) -> EncoderBuilder,
    ) -> Result<Encoder> {
        if let Some(description) = &self.preprocess {
            return Ok(finish(self.described_by(description)?).open(path)?);
        }
        // Its embedding is that of its card: another one is that of a description.
        let refused = match &self.embedding {
            None => match finish(self.plain_opener()).open(path) {
                Err(error @ Error::NotAnEncoder { .. }) => error.into(),
                opened => return Ok(opened?),
            },
            Some(_) => {
                anyhow!("--embedding needs a description of how images are prepared: --preprocess FILE")
            }
        };
        let beside = hub_file::find(path)?.ok_or(refused)?;
        say!("note: images for {} are prepared as {} says", path.display(), beside.display());
        Ok(finish(self.described_by(&beside)?).open(path)?)
    }

    /// How it opens an encoder that describes itself.
    pub(crate) fn plain_opener(&self) -> EncoderBuilder {
        self.computing.opener(&self.runtime)
    }

    /// How it opens an encoder that describes itself for large images, of another size if one is given.
    pub(crate) fn frame_opener(&self, size: Option<InputSize>) -> EncoderBuilder {
        let opener = self.computing.frame_opener(&self.runtime);
        match size {
            Some(InputSize { height, width }) => opener.size(height, width),
            None => opener,
        }
    }

    /// How it opens an encoder of another project.
    fn described_by(&self, path: &Path) -> Result<EncoderBuilder> {
        let description =
            ForeignEncoder { preprocess: hub_file::read(path)?, output: self.embedding.clone() };
        Ok(self.plain_opener().foreign(description))
    }
}

fn provider(typed: &str) -> Result<Provider, String> {
    match typed.strip_prefix("cuda:") {
        _ if typed == "cpu" => Ok(Provider::Cpu),
        Some(number) => {
            number.parse().map(|device| Provider::Cuda { device }).map_err(|error| error.to_string())
        }
        None => Err("expected cpu or cuda:N".into()),
    }
}

/// `224` or `224x448`, height first.
pub(crate) fn size(typed: &str) -> Result<InputSize, String> {
    let side = |text: &str| text.parse().map_err(|_| "expected pixels, such as 224 or 224x448".to_string());
    let (height, width) = typed.split_once('x').unwrap_or((typed, typed));
    Ok(InputSize { height: side(height)?, width: side(width)? })
}
