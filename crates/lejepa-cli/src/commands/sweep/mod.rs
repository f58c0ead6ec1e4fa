//! `lejepa sweep`

mod grid;
mod record;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use lejepa_data::{Error as DataError, Lock};
use lejepa_train::{DeviceChoice, Error as TrainError, Override, pretrain};

use self::grid::{Grid, Point};
use self::record::{IsOwn, Outcome, Record};
use super::train::Display;
use crate::output::say;
use crate::{failure, interrupt, output};

/// Train every combination of a grid, one after the other, and rank the runs
///
/// Run the same command again to go on with a sweep that was stopped.
#[derive(Debug, Args)]
#[command(after_long_help = GRID_HELP)]
pub(crate) struct Arguments {
    /// Grid file
    #[arg(value_name = "GRID.toml")]
    grid: PathBuf,

    /// Images, as for `lejepa train --data`; without it, those of the recipe
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// Where to compute: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: DeviceChoice,

    /// Folder of the runs, of sweep.json and sweep.md [default: runs/ and the grid file's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Change any key of the recipe for all runs, such as train.epochs=10
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

const GRID_HELP: &str = "\
A grid file:
  recipe = \"train.toml\"              # seen from the grid file; without one, the defaults
  [set]                              # the same for all runs
  train.epochs = 20
  [grid]                             # every combination of these
  \"loss.lambda\" = [0.02, 0.05, 0.2]
  \"optimizer.lr\" = [5e-4, 2e-3]";

impl Arguments {
    fn points(&self) -> Result<Vec<Point>> {
        let mut typed = Vec::new();
        if let Some(data) = &self.data {
            typed.push(Override { key: "data.path".into(), value: Some(data.display().to_string().into()) });
        }
        for set in &self.set {
            typed.push(Override::parse(set)?);
        }
        Grid::read(&self.grid)?.points(&typed)
    }

    fn out(&self) -> PathBuf {
        let name = self.grid.file_stem().unwrap_or("sweep".as_ref());
        self.out.clone().unwrap_or_else(|| Path::new("runs").join(name))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let points = arguments.points()?;
    for point in &points {
        // One message now instead of the same one from every run.
        for source in point.config.data.sources()? {
            if !source.path.exists() {
                return Err(DataError::NotFound { path: source.path }.into());
            }
        }
    }
    let out = arguments.out();
    let _lock = Lock::of_folder(&out)?;
    let mut record = Record::open(&out)?;
    interrupt::listen()?;
    for (index, point) in points.iter().enumerate() {
        say!("run {} of {}: {}", index + 1, points.len(), point.name);
        let folder = out.join(&point.name);
        let outcome = match record.settled(&point.name, &point.config) {
            Some(message) => Outcome::Diverged(message),
            None => train(point, &folder, arguments.device, record.is_own(&point.name, &point.config))?,
        };
        match &outcome {
            Outcome::Stopped => return Ok(interrupt::exit_code()),
            Outcome::Diverged(message) | Outcome::Failed(message) => {
                say!("{} failed: {message}", point.name);
            }
            Outcome::Complete => {}
        }
        record.add(point, outcome);
        record.write(points.len() - index - 1)?;
    }

    let selection = record.select()?;
    selection.note_left_out();
    output::line(selection.text());
    output::line(format_args!("\nwritten to {}", out.join("sweep.md").display()));
    Ok(if record.has_failures() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Trains one run to its end, from wherever it stopped. A run of this sweep may have gone on by itself with something
/// changed: that one is no run of the grid any more, and the others are.
fn train(point: &Point, folder: &Path, device: DeviceChoice, is_own: IsOwn) -> Result<Outcome> {
    let mut display = Display::default();
    let trained = pretrain(&point.config, folder, device, &mut |event| display.show(&event));
    display.finish();
    Ok(match trained {
        Ok(summary) if summary.is_complete() => Outcome::Complete,
        Ok(summary) => {
            say!("stopped after step {} of {}; the same command goes on", summary.step, summary.total);
            Outcome::Stopped
        }
        Err(TrainError::Data(DataError::Stopped)) => {
            say!("stopped before the first step");
            Outcome::Stopped
        }
        // The folder belongs to another sweep: going on would mix the two.
        Err(error @ (TrainError::OtherRun { .. } | TrainError::Foreign { .. })) if is_own == IsOwn::No => {
            return Err(error.into());
        }
        Err(error @ TrainError::Diverged { .. }) => Outcome::Diverged(error.to_string()),
        Err(error) => Outcome::Failed(failure::sentence(&error.into())),
    })
}
