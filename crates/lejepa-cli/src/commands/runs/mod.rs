//! `lejepa runs`

mod curves;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use lejepa_data::{Claim, Job};

use crate::output;
use crate::output::say;
use crate::run_folder::{self, Run};
use crate::table::{Column, optional, rows, shortest, table};
use crate::targets::{TargetArguments, marked_svg};

/// List runs: configuration, loss, gauge and probes
///
/// The loss and SIGReg are means over the last tenth of the steps; the gauge reads the encoder's
/// features.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Run folders, or folders that hold such
    #[arg(value_name = "FOLDER", default_value = "runs")]
    folders: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Draw loss, RankMe and k-NN accuracy over the steps into this SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    targets: TargetArguments,
}

const COLUMNS: [Column<Run>; 13] = [
    ("run", |run| run.name()),
    ("arch", |run| run.config.encoder.arch.clone()),
    ("data", |run| run.data()),
    ("lambda", |run| shortest(run.config.loss.lambda)),
    ("lr", |run| shortest(run.config.optimizer.lr)),
    ("batch", |run| run.config.train.batch.to_string()),
    ("steps", |run| match run.total {
        Some(total) => format!("{}/{total}", run.steps),
        None => run.steps.to_string(),
    }),
    ("loss", |run| optional(run.tail.map(|tail| tail.loss), 4)),
    ("SIGReg x floor", |run| optional(run.tail.and_then(|tail| tail.sigreg_over_floor), 2)),
    ("RankMe", |run| optional(run.watch.as_ref().map(|watch| watch.features.rankme), 1)),
    ("verdict", |run| run.watch.as_ref().map_or("-".into(), |watch| watch.features.verdict.clone())),
    ("k-NN", |run| optional(run.watch.as_ref().and_then(|watch| watch.knn), 3)),
    ("linear", |run| optional(run.watch.as_ref().and_then(|watch| watch.linear), 3)),
];

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runs = run_folder::find(&arguments.folders)?;
    if let Some(path) = &arguments.plot {
        let job = Job::new("runs", arguments.folders.iter().map(PathBuf::as_path));
        let claim = Claim::of_files(std::slice::from_ref(path), job, arguments.targets.overwrite())?;
        claim.write(path, marked_svg(claim.mark(), &curves::draw(&runs)?).as_bytes())?;
    }
    run_folder::incomparable(runs.iter()).iter().for_each(|remark| say!("note: {remark}"));
    if arguments.json {
        let runs: Vec<_> = runs.iter().map(Run::to_json).collect();
        output::line(serde_json::to_string_pretty(&runs)?);
    } else if runs.is_empty() {
        say!("no runs found");
    } else {
        output::line(table(&rows(&COLUMNS, &runs)));
    }
    Ok(ExitCode::SUCCESS)
}
