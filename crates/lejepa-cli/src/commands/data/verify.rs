//! `lejepa data verify`

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use lejepa_data::{SplitVerification, Verification};

use super::{print_left_out, print_unreadable, with_bar};
use crate::output;
use crate::source::SourceArguments;
use crate::table::table;

/// Decode every image, name those that cannot be used, and hash the content
///
/// Exits with 1 if an image cannot be used.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: SourceArguments,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let source = arguments.source.config();
    let verification = with_bar(|progress| Verification::of(&source, progress))?;
    if arguments.json {
        output::line(serde_json::to_string_pretty(&verification)?);
    } else {
        verification.splits.iter().for_each(|split| print_unreadable(&split.unreadable));
        let mut rows = vec![["split", "images", "unreadable", "content"].map(String::from).to_vec()];
        rows.extend(verification.splits.iter().map(row));
        output::line(table(&rows));
        let splits = verification.splits.iter();
        splits.for_each(|split| {
            print_left_out(split.split, [split.transparent, split.several_pictures, split.cut])
        });
    }
    Ok(if verification.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(split: &SplitVerification) -> Vec<String> {
    vec![
        split.split.name().into(),
        split.images.to_string(),
        split.unreadable.len().to_string(),
        split.content.clone(),
    ]
}
