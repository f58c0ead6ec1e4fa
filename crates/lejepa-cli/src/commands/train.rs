//! `lejepa train`

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use indicatif::ProgressBar;
use lejepa_train::{Event, Plan, StepMetrics, TrainConfig, pretrain};

use crate::recipe::RecipeArguments;
use crate::{interrupt, output, progress};

/// Pretrain an encoder on unlabelled images
///
/// Run the same command again to go on with a run that was stopped.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    recipe: RecipeArguments,

    /// Images: a folder, an HDF5, Parquet, npz or tar file, or the layout of a well-known dataset
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// Passes over the data; a fraction is fine
    #[arg(long, value_name = "NUMBER")]
    epochs: Option<f64>,

    /// Images per step
    #[arg(long, value_name = "NUMBER")]
    batch: Option<i64>,

    /// Weight of SIGReg, between 0 and 1
    #[arg(long, value_name = "NUMBER")]
    lambda: Option<f64>,

    /// Run folder [default: runs/ and the recipe's folder or the data's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Arguments {
    fn config(&self) -> Result<TrainConfig> {
        let mut flags = Vec::new();
        if let Some(data) = &self.data {
            flags.push(("data.path", data.display().to_string().into()));
        }
        if let Some(epochs) = self.epochs {
            flags.push(("train.epochs", epochs.into()));
        }
        if let Some(batch) = self.batch {
            flags.push(("train.batch", batch.into()));
        }
        if let Some(lambda) = self.lambda {
            flags.push(("loss.lambda", lambda.into()));
        }
        self.recipe.load(flags)
    }

    fn out(&self, config: &TrainConfig) -> PathBuf {
        if let Some(out) = &self.out {
            return out.clone();
        }
        let recipe_folder = self.recipe.config.as_deref().and_then(Path::parent).and_then(Path::file_name);
        let name = match recipe_folder {
            Some(name) => name,
            None => config.data.path.as_deref().and_then(Path::file_name).unwrap_or("mixture".as_ref()),
        };
        Path::new("runs").join(name)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let config = arguments.config()?;
    let out = arguments.out(&config);
    interrupt::listen()?;
    let mut display = Display::default();
    let clock = Instant::now();
    let summary = pretrain(&config, &out, &mut |event| display.show(&event));
    display.finish();
    let summary = match summary {
        Err(_) if interrupt::requested() => {
            eprintln!("stopped before the first step");
            return Ok(ExitCode::from(interrupt::EXIT_CODE));
        }
        summary => summary?,
    };

    if !summary.is_complete() {
        eprintln!("stopped after step {} of {}; the same command goes on", summary.step, summary.total);
        return Ok(ExitCode::from(interrupt::EXIT_CODE));
    }
    match display.last {
        Some(last) => eprintln!(
            "trained {} steps in {}: loss {:.4}, prediction {:.4}, SIGReg {}",
            summary.total,
            progress::duration(clock.elapsed()),
            last.loss,
            last.prediction,
            sigreg(&last)
        ),
        None => eprintln!("nothing to do: all {} steps were taken before", summary.total),
    }
    output::line(out.display());
    Ok(ExitCode::SUCCESS)
}

/// SIGReg as a multiple of its floor, or plain where the statistic's floor is not known.
fn sigreg(metrics: &StepMetrics) -> String {
    match metrics.sigreg_over_floor {
        Some(ratio) => format!("{ratio:.2} x floor"),
        None => format!("{:.4}", metrics.sigreg),
    }
}

/// What a person sees while a run goes on.
#[derive(Default)]
pub(crate) struct Display {
    bar: Option<ProgressBar>,
    last: Option<StepMetrics>,
}

impl Display {
    pub(crate) fn show(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Caching { done, images } => {
                let bar = self.bar.get_or_insert_with(|| progress::bar(*images as u64));
                bar.set_message("images into the cache");
                bar.set_position(*done as u64);
                if done == images {
                    self.finish();
                    self.bar = None;
                }
            }
            Event::Started(plan) => self.start(plan),
            Event::Broken(image) => {
                let line = format!("skipped {}: {}", image.name, image.reason);
                match &self.bar {
                    Some(bar) => bar.suspend(|| eprintln!("{line}")),
                    None => eprintln!("{line}"),
                }
            }
            Event::Step(metrics) => {
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                    bar.set_message(format!(
                        "loss {:.3}  prediction {:.3}  SIGReg {}  {:.0} images/s",
                        metrics.loss,
                        metrics.prediction,
                        sigreg(metrics),
                        metrics.images_per_second
                    ));
                }
                self.last = Some((*metrics).clone());
            }
        }
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn start(&mut self, plan: &Plan) {
        let millions = plan.parameters as f64 / 1e6;
        eprintln!("{} images, {millions:.2} M parameters, {} steps", plan.images, plan.total);
        for note in &plan.notes {
            eprintln!("note: {note}");
        }
        if plan.start > 0 {
            eprintln!("going on after step {}", plan.start);
        }
        let bar = progress::bar(plan.total);
        bar.set_position(plan.start);
        bar.reset_eta();
        self.bar = Some(bar);
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
