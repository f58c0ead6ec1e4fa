//! `lejepa verify`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::encoder_arguments::RuntimeArguments;
use crate::output;

/// Run the self-test inside an exported encoder: does it compute here what it computed where it was made?
///
/// Exits with 1 if it does not.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// File of `lejepa export`
    encoder: PathBuf,

    #[command(flatten)]
    runtime: RuntimeArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let encoder = arguments.runtime.opener().open(&arguments.encoder)?;
    let result = encoder.self_test()?;
    let verdict = if result.passed() { "passed" } else { "failed" };
    output::line(format_args!(
        "{verdict}: the embedding differs by {:.1e} of its length, tolerated: {:.0e}",
        result.drift, result.tolerance
    ));
    Ok(if result.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
