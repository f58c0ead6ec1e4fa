//! `lejepa train`

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use indicatif::ProgressBar;
use lejepa_data::{BrokenImage, Error as DataError, ViewSize, printable_name};
use lejepa_train::{
    DeviceChoice, Error as TrainError, Event, Override, Plan, Session, StepMetrics, TrainConfig,
    WatchMetrics, rehearse,
};

use crate::output::say;
use crate::recipe::RecipeArguments;
use crate::{allocator, interrupt, output, progress};

/// Pretrain an encoder on unlabelled images
///
/// Run the same command again to go on with a run that was stopped; --out alone does it too.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    recipe: RecipeArguments,

    /// Images: a folder, an HDF5, Parquet, npz or tar file, or the layout of a well-known dataset
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// Leave out what `lejepa eval` asks about where the data has no test split: a fifth of every class
    #[arg(long)]
    hold_out: bool,

    /// Passes over the data; a fraction is fine
    #[arg(long, value_name = "NUMBER")]
    epochs: Option<f64>,

    /// All steps, instead of passes over the data
    #[arg(long, value_name = "NUMBER", conflicts_with = "epochs")]
    steps: Option<i64>,

    /// Images per step
    #[arg(long, value_name = "NUMBER")]
    batch: Option<i64>,

    /// Weight of SIGReg, between 0 and 1
    #[arg(long, value_name = "NUMBER")]
    lambda: Option<f64>,

    /// Where to compute: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: DeviceChoice,

    /// Start from the encoder of another run, such as one of `lejepa import`
    #[arg(long, value_name = "RUN")]
    init: Option<PathBuf>,

    /// Show what the run would do and need, check that every parameter learns, and stop
    #[arg(long)]
    dry_run: bool,

    /// Go on with a run and another value of a key, such as optimizer.lr=1e-4, train.epochs=200 or data.path=PATH;
    /// it is written down in the run folder
    #[arg(long, value_name = "KEY=VALUE")]
    continue_with: Vec<String>,

    /// With --continue-with: go on from this checkpoint instead of the newest, 0 for the beginning; later ones are
    /// put aside
    #[arg(long, value_name = "STEP", requires = "continue_with")]
    from_step: Option<u64>,

    /// Run folder [default: runs/ and the recipe's folder or the data's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Arguments {
    /// The configuration with all changes: that of the run, if nothing but its folder is named.
    fn config(&self, changes: &[Override]) -> Result<TrainConfig> {
        let flags = self.flags();
        let of_run = match &self.out {
            Some(out) if self.recipe.is_empty() && flags.is_empty() => TrainConfig::of_run(out)?,
            _ => None,
        };
        let config = match of_run {
            Some(config) => config,
            None => self.recipe.load(flags)?,
        };
        Ok(if changes.is_empty() { config } else { config.changed(changes)? })
    }

    fn flags(&self) -> Vec<(&'static str, toml::Value)> {
        let mut flags = Vec::new();
        if let Some(data) = &self.data {
            flags.push(("data.path", data.display().to_string().into()));
        }
        if self.hold_out {
            flags.push(("data.hold_out", true.into()));
        }
        if let Some(epochs) = self.epochs {
            flags.push(("train.epochs", epochs.into()));
        }
        if let Some(steps) = self.steps {
            flags.push(("train.steps", steps.into()));
        }
        if let Some(batch) = self.batch {
            flags.push(("train.batch", batch.into()));
        }
        if let Some(lambda) = self.lambda {
            flags.push(("loss.lambda", lambda.into()));
        }
        if let Some(init) = &self.init {
            flags.push(("train.init", init.display().to_string().into()));
        }
        flags
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
    let changes: Vec<Override> =
        arguments.continue_with.iter().map(|typed| Override::parse(typed)).collect::<Result<_, _>>()?;
    let config = arguments.config(&changes)?;
    if arguments.dry_run {
        return dry_run(&config, arguments.device);
    }
    let out = arguments.out(&config);
    interrupt::listen()?;
    let mut display = Display::default();
    let clock = Instant::now();
    let session = Session {
        config: &config,
        run: &out,
        device: arguments.device,
        changes: &changes,
        from_step: arguments.from_step,
    };
    let summary = session.pretrain(&mut |event| display.show(&event));
    display.finish();
    let summary = match summary {
        Err(TrainError::Data(DataError::Stopped)) => {
            say!("stopped before the first step");
            return Ok(interrupt::exit_code());
        }
        summary => summary?,
    };

    if !summary.is_complete() {
        say!("stopped after step {} of {}; the same command goes on", summary.step, summary.total);
        return Ok(interrupt::exit_code());
    }
    match display.last {
        Some(last) => say!(
            "trained {} steps in {}: loss {:.4}, prediction {:.4}, SIGReg {}",
            summary.total,
            progress::duration(clock.elapsed()),
            last.loss,
            last.prediction,
            sigreg(&last)
        ),
        None => say!("nothing to do: all {} steps were taken before", summary.total),
    }
    output::line(out.display());
    Ok(ExitCode::SUCCESS)
}

/// Prints what a run would do and need.
fn dry_run(config: &TrainConfig, device: DeviceChoice) -> Result<ExitCode> {
    let mut display = Display::default();
    let rehearsal = rehearse(config, device, &allocator::give_back, &mut |event| display.show(&event))?;
    let views = |(count, size): (usize, ViewSize)| format!("{count} x {}x{}", size.height, size.width);
    let local = match rehearsal.local {
        (0, _) => String::new(),
        local => format!(" and {} local", views(local)),
    };
    let parameters: Vec<String> = rehearsal
        .parameters
        .iter()
        .map(|(part, count)| format!("{part} {:.2} M", *count as f64 / 1e6))
        .collect();
    let memory = rehearsal
        .memory
        .map_or_else(|| "not known on this system".into(), |bytes| format!("about {:.2} GB", bytes / 1e9));
    let run = Duration::from_secs_f64(rehearsal.step_seconds * rehearsal.steps as f64);
    let measured = match rehearsal.measured[..] {
        [_] => "in whole steps".to_string(),
        ref few => {
            let few: Vec<String> = few.iter().map(ToString::to_string).collect();
            format!("in steps of {} images, whole ones may take a fifth more", few.join(" and "))
        }
    };
    let rows = [
        ("data", format!("{} images, {} steps of {}", rehearsal.images, rehearsal.steps, config.train.batch)),
        ("views", format!("{} global{local}", views(rehearsal.global))),
        ("encoder", format!("{}, {} dimensions", config.encoder.arch, rehearsal.feature_dim)),
        ("parameters", parameters.join(", ")),
        ("gradients", format!("all {} tensors learn", rehearsal.tensors)),
        ("memory", memory),
        (
            "time",
            format!("about {:.2} s per step, {} in all", rehearsal.step_seconds, progress::duration(run)),
        ),
        ("measured", format!("{measured}, {device}; nothing was written")),
    ];
    for (name, value) in rows {
        output::line(format_args!("{name:<11} {value}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// SIGReg as a multiple of its floor, or plain where the statistic's floor is not known.
fn sigreg(metrics: &StepMetrics) -> String {
    match metrics.sigreg_over_floor {
        Some(ratio) => format!("{ratio:.2} x floor"),
        None => format!("{:.4}", metrics.sigreg),
    }
}

/// What a look has found, in one line.
fn look_line(look: &WatchMetrics) -> String {
    let features = &look.features;
    let mut line = format!(
        "step {:>6}: features {}, RankMe {:.1}, SIGReg {:.0} x floor",
        look.step, features.verdict, features.rankme, features.sigreg_over_floor
    );
    for (name, accuracy) in [("k-NN", look.knn), ("linear", look.linear)] {
        if let Some(accuracy) = accuracy {
            line.push_str(&format!(", {name} {:.1} %", 100. * accuracy));
        }
    }
    line
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
            Event::Hashing(bytes) => {
                let bar = self.bar.get_or_insert_with(ProgressBar::hidden);
                progress::hashing(bar, "data", *bytes);
                if bytes.done == bytes.total {
                    self.bar = None;
                }
            }
            Event::Caching { done, images } => {
                let bar = self.bar.get_or_insert_with(|| progress::bar(*images as u64));
                bar.set_message("images into the cache");
                bar.set_position(*done as u64);
                if done == images {
                    self.finish();
                    self.bar = None;
                }
            }
            Event::Remembering { done, images } => {
                let bar = self.bar.get_or_insert_with(|| progress::bar(*images as u64));
                bar.set_message("images remembered");
                bar.set_position(*done as u64);
                if done == images {
                    self.finish();
                    self.bar = None;
                }
            }
            Event::Damaged { path, error } => {
                say!("{error}");
                say!("put aside as {}, going on from the checkpoint before it", path.display());
            }
            Event::Started(plan) => self.start(plan),
            Event::Broken(image) => {
                let BrokenImage { name, reason } = image;
                self.print(format!("skipped {}: {}", printable_name(name), printable_name(reason)));
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
            Event::Look(look) => self.print(look_line(look)),
        }
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// A line that stays, above the bar.
    fn print(&self, line: String) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say!("{line}")),
            None => say!("{line}"),
        }
    }

    fn start(&mut self, plan: &Plan) {
        let millions = plan.parameters as f64 / 1e6;
        say!("{} images, {millions:.2} M parameters, {} steps", plan.images, plan.total);
        for note in &plan.notes {
            say!("note: {note}");
        }
        if plan.start > 0 {
            say!("going on after step {}", plan.start);
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
