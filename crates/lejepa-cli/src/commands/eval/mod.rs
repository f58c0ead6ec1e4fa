//! `lejepa eval`

mod candidates;
mod sets;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use indicatif::ProgressBar;
use lejepa_data::{Split, printable};
use lejepa_embed::InputSize;
use lejepa_eval::report::Terminal;
use lejepa_eval::{Evaluation, Event, ReportFolder, Suite, Video};
use lejepa_video::{ClipChoice, ClipSet};

use crate::command_line::command_line;
use crate::encoder_arguments::{EncoderArguments, size};
use crate::output::say;
use crate::source::SourceOptions;
use crate::targets::TargetArguments;
use crate::{cache_folder, failure, ffmpeg, interrupt, output, progress};

/// Score encoders on labelled data, with untrained ones and raw pixels beside them
///
/// Written after every probe; stopped by Ctrl-C or otherwise, the same command goes on where it was.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files of `lejepa export`, or ONNX encoders of other projects with a preprocessor_config.json beside
    /// them; none for the demonstration of the suite isotropy
    #[arg(value_name = "ENCODER")]
    encoders: Vec<PathBuf>,

    /// Name of a suite (quick, knn, probes, fewshot, galaxy10, isotropy), or the path of a .toml file
    #[arg(long, value_name = "SUITE")]
    suite: String,

    /// Labelled data, in any form that `lejepa data inspect` knows
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// Folder in which the sets of the suite lie, under their official names
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["data", "format", "fold", "images", "labels", "accept_truncated", "unpack_limit"])]
    data_root: Option<PathBuf>,

    /// Split that is asked about [default: test, or validation where test has no labels, or a fifth held back]
    #[arg(long, value_name = "SPLIT", value_parser = test_split)]
    test_split: Option<Split>,

    /// Learn from validation images too, as most tables of transfer learning do
    #[arg(long)]
    use_validation: bool,

    /// Clips to segment for the report too, as `lejepa segment` does: by attention, and by following the first
    /// of the true masks
    #[arg(long, value_name = "PATH")]
    video: Option<PathBuf>,

    /// Image size for the clips, one of those that the encoder was exported for [default: --size]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "video")]
    video_size: Option<InputSize>,

    /// Folder of their true masks [default: those of DAVIS, if it is its root]
    #[arg(long, value_name = "FOLDER", requires = "video")]
    masks: Option<PathBuf>,

    /// Clips of a set: `all`, a file with a name in every line, or names with commas between them [default: the
    /// validation split of DAVIS, if it has the list, else all]
    #[arg(long, value_name = "LIST", requires = "video")]
    clips: Option<String>,

    /// Folder for report.html, report.md, report.json and tables [default: eval-ENCODER-SUITE-DATA in the
    /// working directory]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Folder in which features are kept for the next time [default: lejepa/features in the user's cache]
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,

    #[command(flatten)]
    targets: TargetArguments,

    #[command(flatten)]
    options: SourceOptions,

    #[command(flatten)]
    computing: EncoderArguments,
}

impl Arguments {
    /// A suite can do without encoder and data only if it simulates, and then it needs neither.
    fn check(&self, suite: &Suite) -> Result<()> {
        let has_data = self.data.is_some() || self.data_root.is_some();
        match (self.encoders.is_empty(), has_data) {
            (true, true) => bail!("no encoder to evaluate: lejepa eval ENCODER --suite {}", self.suite),
            (false, false) => bail!("no data to evaluate on: use --data PATH or --data-root FOLDER"),
            (true, _) if self.video.is_some() => bail!("no encoder to segment the video with"),
            (true, false) if suite.demonstration.is_none() => {
                bail!("the suite {} needs an encoder and data: lejepa eval ENCODER --data PATH", self.suite)
            }
            _ => Ok(()),
        }
    }

    /// The suite with what was typed beside it.
    fn suite(&self) -> Result<Suite> {
        let mut suite = Suite::load(&self.suite)?;
        suite.test_split = self.test_split.or(suite.test_split);
        suite.use_validation |= self.use_validation;
        match suite.check() {
            Ok(()) => Ok(suite),
            Err(problem) => bail!("{problem}"),
        }
    }

    /// Below the working directory, with a name that says what is in it.
    fn out(&self) -> PathBuf {
        let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let encoder = self.encoders.first().map(|path| candidates::telling_name(path));
        let data = self.data.as_deref().or(self.data_root.as_deref()).map(sets::name);
        let learnt = self.use_validation.then(|| "train+val".into());
        let asked = self.test_split.map(|split| split.name().into());
        let names = [Some("eval".into()), encoder, Some(stem(Path::new(&self.suite))), data, learnt, asked];
        let default = || names.into_iter().flatten().collect::<Vec<_>>().join("-").into();
        self.out.clone().unwrap_or_else(default)
    }

    fn cache(&self) -> PathBuf {
        self.cache.clone().unwrap_or_else(cache_folder::features)
    }
}

fn test_split(typed: &str) -> Result<Split, String> {
    match typed {
        "test" => Ok(Split::Test),
        "val" | "validation" => Ok(Split::Validation),
        _ => Err("expected test or validation".into()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let suite = arguments.suite()?;
    arguments.check(&suite)?;
    let (datasets, missing) = sets::open(arguments, &suite)?;
    let choice = arguments.clips.as_deref().map(ClipChoice::parse).transpose()?.unwrap_or_default();
    let clips = |path: &PathBuf| ClipSet::find(path, arguments.masks.as_deref(), &choice);
    let clips = arguments.video.as_ref().map(clips).transpose()?;
    clips.iter().flat_map(|set| &set.notes).for_each(|note| say!("note: {note}"));
    let opened = candidates::open(arguments, &suite)?;
    let candidates = opened.candidates();
    let for_video = clips.is_some().then(|| candidates::open_for_video(arguments, &suite)).transpose()?;
    let video_candidates = for_video.as_ref().map(candidates::Opened::candidates).unwrap_or_default();
    let ffmpeg = ffmpeg::installed();
    let video =
        clips.as_ref().map(|set| Video { set, candidates: &video_candidates, ffmpeg: ffmpeg.as_ref() });

    interrupt::listen()?;
    let clock = Instant::now();
    let cache = arguments.cache();
    let folder = ReportFolder::new(arguments.out()).overwriting(arguments.targets.overwrite());
    let evaluation = Evaluation {
        suite: &suite,
        datasets: &datasets,
        missing,
        candidates: &candidates,
        video,
        command: &command_line(),
        cache: &cache,
        folder: &folder,
    };
    let mut bar = ProgressBar::hidden();
    let spin = |bar: &mut ProgressBar, message: String| {
        bar.finish_and_clear();
        *bar = progress::spinner();
        bar.set_message(printable(&message).into_owned());
    };
    let report = evaluation.run(&mut |event| {
        match event {
            Event::Hashing { dataset, bytes } => progress::hashing(&mut bar, dataset, bytes),
            Event::Extracting { dataset, candidate, images } => {
                bar = progress::bar(images as u64);
                let message = format!("{dataset}: features of {candidate}");
                bar.set_message(printable(&message).into_owned());
            }
            Event::Extracted(images) => bar.inc(images as u64),
            Event::Probing { dataset, candidate, probe, shots, draw } => {
                let message = format!("{dataset}: {probe} of {candidate}, shots: {shots}, draw {}", draw + 1);
                spin(&mut bar, message);
            }
            Event::Probed(share) => bar.set_prefix(format!("{:3.0} %", 100. * share)),
            Event::Shaping { dataset, candidate } => {
                spin(&mut bar, format!("{dataset}: shapes of {candidate}"));
            }
            Event::Drawing { dataset, candidate } => {
                spin(&mut bar, format!("{dataset}: pictures of {candidate}"));
            }
            Event::Segmenting { method, clip, frames } => {
                bar.finish_and_clear();
                bar = frames.map_or_else(progress::spinner, |frames| progress::bar(frames as u64));
                bar.set_message(printable(&format!("{clip}: masks by {method}")).into_owned());
            }
            Event::Segmented(frames) => bar.inc(frames as u64),
            Event::LeftOut(error) => {
                let reason = failure::sentence_of(error);
                bar.suspend(|| say!("note: left out: {reason}"));
            }
            Event::Noted { dataset, note } => bar.suspend(|| say!("note: {dataset}: {note}")),
            Event::Demonstrating => spin(&mut bar, "simulated features".into()),
            Event::Scored(_) => bar.finish_and_clear(),
        }
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    let out = folder.path().display();
    if matches!(report, Err(lejepa_eval::Error::Stopped)) {
        say!("stopped; {out} holds what is done, and the same command goes on from there");
        return Ok(interrupt::exit_code());
    }
    let report = report?;
    say!("evaluated in {}, written to {out}: open report.html", progress::duration(clock.elapsed()));
    output::line(Terminal.text(&report).trim_end());
    Ok(ExitCode::SUCCESS)
}
