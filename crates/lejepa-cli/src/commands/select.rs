//! `lejepa select`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use crate::selection::Selection;
use crate::{output, run_folder};

/// Rank runs without labels, by loss / lambda^alpha
///
/// The loss is the mean over the last tenth of the steps. Where runs were watched with labelled
/// images, the correlation of the score with their accuracies is printed too.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Run folders, or folders that hold such
    #[arg(value_name = "RUNS", required = true)]
    runs: Vec<PathBuf>,

    /// Power of lambda that the loss is divided by
    #[arg(long, value_name = "NUMBER", default_value_t = ALPHA)]
    alpha: f64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The paper's power of lambda.
pub(crate) const ALPHA: f64 = 0.4;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let selection = Selection::of(run_folder::find(&arguments.runs)?, arguments.alpha)?;
    selection.note_left_out();
    if arguments.json {
        output::line(serde_json::to_string_pretty(&selection.to_json())?);
    } else if selection.is_empty() {
        bail!("no complete runs to choose from");
    } else {
        output::line(selection.text());
    }
    Ok(ExitCode::SUCCESS)
}
