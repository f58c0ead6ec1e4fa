//! Data as it is named on the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lejepa_data::{Format, ReadOptions, SourceConfig};

/// What every command that looks at data takes.
#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    /// Folder or file that holds the images
    path: PathBuf,

    #[command(flatten)]
    options: SourceOptions,
}

/// How data is read; the same for all of a command's data.
#[derive(Debug, Args)]
pub(crate) struct SourceOptions {
    /// How it is stored, instead of recognising it
    #[arg(long, value_name = "NAME", value_parser = format_names())]
    format: Option<Format>,

    /// Which official split of a dataset that has several, such as DTD
    #[arg(long, value_name = "NUMBER")]
    fold: Option<usize>,

    /// Name of the images inside a file that holds several arrays or columns
    #[arg(long, value_name = "NAME")]
    images: Option<String>,

    /// Name of the labels inside such a file
    #[arg(long, value_name = "NAME")]
    labels: Option<String>,

    /// Take JPEG files that are cut off or damaged, with grey for what is missing
    #[arg(long)]
    accept_truncated: bool,

    /// Memory that one piece of packed data may ask for, such as an array of an npz file [default: 8192]
    #[arg(long, value_name = "MEGABYTES")]
    unpack_limit: Option<u64>,
}

impl SourceArguments {
    /// The same as a recipe would say it.
    pub(crate) fn config(&self) -> SourceConfig {
        self.options.config(&self.path)
    }
}

impl SourceOptions {
    /// Data at a path, as a recipe would say it.
    pub(crate) fn config(&self, path: &Path) -> SourceConfig {
        let options = ReadOptions {
            fold: self.fold,
            images: self.images.clone(),
            labels: self.labels.clone(),
            accept_truncated: self.accept_truncated,
            unpack_limit: self.unpack_limit,
        };
        SourceConfig { path: path.into(), format: self.format, options }
    }
}

fn format_names() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|typed| {
        Format::ALL.into_iter().find(|format| format.name() == typed).ok_or("no such format")
    })
}
