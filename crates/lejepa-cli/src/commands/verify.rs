//! `lejepa verify`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::encoder_arguments::{RuntimeArguments, TrustArguments};
use crate::output;

/// Is an exported encoder undamaged, and does it compute here what it computed where it was made?
///
/// Compares the file with its checksum and runs the self-test inside. Exits with 1 if either fails.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// File of `lejepa export`
    encoder: PathBuf,

    #[command(flatten)]
    trust: TrustArguments,

    #[command(flatten)]
    runtime: RuntimeArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let encoder = arguments.trust.apply(arguments.runtime.opener()).open(&arguments.encoder)?;
    let result = encoder.self_test()?;
    let checksum = if encoder.is_checked() {
        "the checksum matches"
    } else {
        "no checksum inside, so that damage too small for the self-test cannot be told: export it again"
    };
    let verdict = if result.passed() { "passed" } else { "failed" };
    output::line(format_args!(
        "{verdict}: the embedding differs by {:.1e} of its length, tolerated: {:.0e}; {checksum}",
        result.drift, result.tolerance
    ));
    Ok(if result.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
