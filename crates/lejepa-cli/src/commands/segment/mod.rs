//! `lejepa segment`

mod settings;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use indicatif::ProgressBar;
use lejepa_data::{Claim, Fingerprinter, Job, Output, printable};
use lejepa_embed::Encoder;
use lejepa_video::{
    Clip, ClipChoice, ClipSet, Error, Ffmpeg, Segmentation, SegmentationCandidate, SegmentationEvent,
};

use self::settings::MethodArguments;
use crate::command_line::command_line;
use crate::encoder_arguments::{ComputingArguments, RuntimeArguments};
use crate::output::say;
use crate::picture_arguments::at_least_one;
use crate::targets::TargetArguments;
use crate::untrained::{Twin, untrained};
use crate::{cache_folder, failure, ffmpeg, interrupt, output, progress};

/// Find the objects of a video: by what the encoder looks at, or by following a mask
///
/// Writes a mask for every frame (indexed PNG with the palette of DAVIS), a film of the masks over the
/// frames (overlay.gif, with ffmpeg also overlay.mp4) and a report. Frames are seen whole: where their shape
/// is not that of --size they are squashed, and masks are stretched back. Frames that cannot be read are left out.
/// With true masks the report says how good the masks are, beside those of the same encoder untrained and of
/// a centred box.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// File of `lejepa export`
    encoder: PathBuf,

    /// Folder of frames, GIF, animated PNG or WebP, or any film that an installed ffmpeg reads; or a folder
    /// of such folders, or the root of DAVIS
    video: PathBuf,

    /// Folder to write masks, films, report.html, report.md and report.json into
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,

    #[command(flatten)]
    targets: TargetArguments,

    /// Folder of true masks: PNG files, indexed or grey, with the names of their frames [default: those of
    /// DAVIS, if it is its root]
    #[arg(long, value_name = "FOLDER")]
    masks: Option<PathBuf>,

    /// Clips of a set: `all`, a file with a name in every line, or names with commas between them [default: the
    /// validation split of DAVIS, if it has the list, else all]
    #[arg(long, value_name = "LIST")]
    clips: Option<String>,

    #[command(flatten)]
    method: MethodArguments,

    /// Most frames of a clip
    #[arg(long, value_name = "FRAMES", value_parser = at_least_one)]
    frames: Option<usize>,

    /// The program ffmpeg, instead of looking for it
    #[arg(long, value_name = "FILE")]
    ffmpeg: Option<PathBuf>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    computing: ComputingArguments,

    #[command(flatten)]
    runtime: RuntimeArguments,
}

impl Arguments {
    fn ffmpeg(&self) -> Option<Ffmpeg> {
        self.ffmpeg.as_ref().map(Ffmpeg::at).or_else(ffmpeg::installed)
    }

    /// The right to write into the folder.
    fn claim(&self, encoder: &Encoder, clips: &[Clip]) -> Result<Claim> {
        let own = ["report.json", "report.md", "report.html"].map(String::from);
        let of_clips = match clips {
            [_] => ["masks", "overlay.gif", "overlay.mp4"].map(String::from).to_vec(),
            several => several.iter().map(|clip| clip.name.clone()).collect(),
        };
        let job = Job::new("segment", [self.encoder.as_path(), &self.video]);
        let memory = cache_folder::features().join("hashes");
        let mut content = vec![encoder.fingerprint()];
        for clip in clips {
            content.push(clip.fingerprint(&memory)?);
        }
        let job = job.with_content(&Fingerprinter::combined(content));
        let names = [&own[..], &of_clips].concat();
        Ok(Claim::of_folder(&self.out, &names, job, self.targets.overwrite())?)
    }

    /// The same encoder before its first step, if there is something to compare with.
    fn untrained(&self, encoder: &Encoder, output: Output, clips: &[Clip]) -> Result<Option<Encoder>> {
        if clips.iter().all(|clip| clip.masks.is_none()) {
            return Ok(None);
        }
        let opener = self.computing.frame_opener(&self.runtime);
        let untrained = untrained(encoder, &[Output::Embedding, output], &opener)?;
        if untrained.is_none() {
            say!("note: no untrained baseline, the file carries no training configuration");
        }
        Ok(untrained)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let choice = arguments.clips.as_deref().map(ClipChoice::parse).transpose()?.unwrap_or_default();
    let set = ClipSet::find(&arguments.video, arguments.masks.as_deref(), &choice)?;
    set.notes.iter().for_each(|note| say!("note: {note}"));
    let method = arguments.method.resolve(&set.clips)?;
    let encoder = arguments.computing.frame_opener(&arguments.runtime).open(&arguments.encoder)?;
    // Of no image: an error without the output.
    encoder.compute(method.output(), &[])?;
    let untrained = arguments.untrained(&encoder, method.output(), &set.clips)?;
    let mut candidates = vec![SegmentationCandidate { name: "encoder", encoder: &encoder }];
    if let Some(twin) = &untrained {
        candidates.push(SegmentationCandidate { name: Twin::of(&encoder).title(), encoder: twin });
    }

    interrupt::listen()?;
    let claim = arguments.claim(&encoder, &set.clips)?;
    let ffmpeg = arguments.ffmpeg();
    if ffmpeg.is_none() {
        say!("note: no overlay.mp4, since ffmpeg was not found");
    }
    let segmentation = Segmentation {
        method,
        candidates: &candidates,
        ffmpeg: ffmpeg.as_ref(),
        most_frames: arguments.frames,
        list: set.list.as_deref(),
        notes: &set.notes,
        out: &arguments.out,
        claim: Some(&claim),
        command: &command_line(),
    };
    segment(arguments, &segmentation, &set.clips)
}

fn segment(arguments: &Arguments, segmentation: &Segmentation<'_>, clips: &[Clip]) -> Result<ExitCode> {
    let (clock, out) = (Instant::now(), arguments.out.display());
    let mut bar = ProgressBar::hidden();
    let mut clip = ClipProgress::default();
    let report = segmentation.run(clips, &mut |event| {
        match event {
            SegmentationEvent::Clip { name, frames } => {
                bar.finish_and_clear();
                bar = frames.map_or_else(progress::spinner, |frames| progress::bar(frames as u64));
                clip = ClipProgress { name: printable(name).into_owned(), ..ClipProgress::default() };
                bar.set_message(clip.name.clone());
            }
            SegmentationEvent::Frames(frames) => {
                bar.inc(frames as u64);
                clip.frames += frames;
                bar.set_message(clip.message());
            }
            SegmentationEvent::LeftOut(error) => {
                let reason = failure::sentence_of(error);
                bar.suspend(|| say!("note: left out: {reason}"));
            }
        }
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    if matches!(report, Err(Error::Stopped)) {
        say!("stopped; {out} holds the masks so far");
        return Ok(interrupt::exit_code());
    }
    let report = report?;
    let frames: usize = report.clips.iter().map(|clip| clip.frames).sum();
    let speed = frames as f64 / clock.elapsed().as_secs_f64();
    let time = progress::duration(clock.elapsed());
    say!("{frames} masks in {time} ({speed:.1} frames/s), written to {out}: open report.html");
    for clip in &report.clips {
        let folder = if clips.len() == 1 { arguments.out.clone() } else { arguments.out.join(&clip.name) };
        let masks = std::fs::read_dir(folder.join("masks")).map_or(0, Iterator::count);
        if masks > clip.frames {
            let (more, folder) = (masks - clip.frames, folder.display());
            say!("note: {more} files of an earlier time are among the masks of: {folder}");
        }
    }
    match report.to_table() {
        _ if arguments.json => output::line(serde_json::to_string_pretty(&report)?),
        Some(table) => output::line(table.trim_end()),
        None => output::line(out),
    }
    Ok(ExitCode::SUCCESS)
}

/// What is said beside the bar.
struct ClipProgress {
    name: String,
    start: Instant,
    frames: usize,
}

impl Default for ClipProgress {
    fn default() -> Self {
        Self { name: String::new(), start: Instant::now(), frames: 0 }
    }
}

impl ClipProgress {
    fn message(&self) -> String {
        let speed = self.frames as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
        format!("{}: {} frames, {speed:.1} frames/s", self.name, self.frames)
    }
}
