//! The clips of an evaluation: masks by attention, and by following the first of the true ones.

use std::ops::ControlFlow;
use std::path::Path;

use lejepa_picture::ATTENTION_MASS;

use crate::features::FeatureSource;
use crate::report::Report;
use crate::run::evaluation::{HASHES, Observer};
use crate::run::program::program;
use crate::run::{Candidate, Evaluation, Event, Video};
use crate::video::{
    AttentionSettings, Clip, ClipReport, ClipSet, Ffmpeg, PropagationSettings, Segmentation,
    SegmentationCandidate, SegmentationEvent, SegmentationMethod,
};
use crate::{Error, Result};

/// One method, with the clips and the encoders that it can be used on.
pub(crate) struct VideoRun<'a> {
    ffmpeg: Option<&'a Ffmpeg>,
    /// What its folder is called.
    name: &'static str,
    method: SegmentationMethod,
    set: &'a ClipSet,
    clips: Vec<&'a Clip>,
    candidates: Vec<SegmentationCandidate<'a>>,
}

/// What is in the folder of a clip.
const MASKS: &str = "masks";
const FILMS: [&str; 2] = ["overlay.gif", "overlay.mp4"];
/// Folders in which masks of clips lie.
const FOLDER: &str = "video";
const METHODS: [&str; 2] = ["attention", "propagation"];

/// In the folder of a clip's masks: the name of what they are of, and what every file holds.
const MARK: &str = "cell.txt";

impl<'a> VideoRun<'a> {
    /// What there is to do; an error if nothing can be done.
    pub(crate) fn plan(video: &'a Video<'a>) -> Result<Vec<Self>> {
        let settings = AttentionSettings { mass: ATTENTION_MASS, smoothing: 0. };
        let attention = SegmentationMethod::Attention { settings, head: None };
        let settings = PropagationSettings::default();
        let propagation = SegmentationMethod::Propagation { settings, first_mask: None };
        let [by_attention, by_propagation] = METHODS;
        let runs = [(by_attention, attention, false), (by_propagation, propagation, true)];
        let runs: Vec<Self> = runs
            .into_iter()
            .map(|(name, method, needs_masks)| Self {
                name,
                ffmpeg: video.ffmpeg,
                set: video.set,
                clips: video.set.clips.iter().filter(|clip| clip.masks.is_some() || !needs_masks).collect(),
                candidates: encoders(video, &method),
                method,
            })
            .filter(|run| !run.clips.is_empty() && !run.candidates.is_empty())
            .collect();
        if runs.is_empty() { Err(Error::NothingToSegment) } else { Ok(runs) }
    }

    /// Segments all clips; the report is written after each.
    pub(crate) fn run(
        &self,
        evaluation: &Evaluation<'_>,
        report: &mut Report,
        observer: &mut Observer<'_>,
    ) -> Result<()> {
        let out = evaluation.folder.path().join(FOLDER).join(self.name);
        let segmentation = Segmentation {
            method: self.method.clone(),
            candidates: &self.candidates,
            ffmpeg: self.ffmpeg,
            most_frames: None,
            list: self.set.list.as_deref(),
            notes: &self.set.notes,
            out: &out,
            // The folder of each clip says whose it is.
            claim: None,
            command: evaluation.command,
        };
        let mut video = segmentation.start()?;
        for &clip in &self.clips {
            match self.clip(&segmentation, clip, evaluation, observer) {
                Err(error) if error.leaves_out_a_clip() => {
                    video.notes.push(format!("left out: {error}"));
                    observer.tell(Event::LeftOut(&error))?;
                }
                found => video.clips.push(found?),
            }
            video.summarise();
            report.videos.retain(|other| other.protocol != video.protocol);
            report.videos.push(video.clone());
            evaluation.folder.write(report)?;
            observer.tell(Event::Scored(report))?;
        }
        Ok(())
    }

    /// One clip, or what an earlier evaluation found in it.
    fn clip(
        &self,
        segmentation: &Segmentation<'_>,
        clip: &Clip,
        evaluation: &Evaluation<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<ClipReport> {
        let key = self.key(segmentation, clip, &evaluation.cache.join(HASHES))?;
        let folder = segmentation.out.join(&clip.name);
        let mark = folder.join(MARK);
        let is_of_it = || {
            let found = std::fs::read_to_string(&mark).unwrap_or_default();
            found.lines().next() == Some(&key) && listing(&folder, &key).is_ok_and(|listing| listing == found)
        };
        if let Some(found) = evaluation.folder.read_cell(&key).filter(|_| is_of_it()) {
            return Ok(found);
        }
        // Masks of something else are not left behind, but what is not of an evaluation stays.
        if folder.symlink_metadata().is_ok() {
            if !mark.is_file() && !evaluation.folder.overwrites() {
                return Err(lejepa_data::Error::Exists { path: folder }.into());
            }
            remove_folder(&folder)?;
        }
        lejepa_data::write_atomically(&mark, |file| writeln!(file, "begun"))?;
        let mut watch = |event: SegmentationEvent<'_>| {
            let told = observer.tell(match event {
                SegmentationEvent::Clip { name, frames } => {
                    Event::Segmenting { method: self.name, clip: name, frames }
                }
                SegmentationEvent::Frames(frames) => Event::Segmented(frames),
                SegmentationEvent::LeftOut(error) => Event::LeftOut(error),
            });
            if told.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let found = segmentation.segment(clip, &folder, &mut watch)?;
        let listing = listing(&folder, &key)?;
        lejepa_data::write_atomically(&mark, |file| write!(file, "{listing}"))?;
        evaluation.folder.write_cell(&key, &found)?;
        Ok(found)
    }

    /// A name for what is found in a clip: the same one stands for the same masks.
    fn key(&self, segmentation: &Segmentation<'_>, clip: &Clip, memory: &Path) -> Result<String> {
        let candidate = |candidate: &SegmentationCandidate<'_>| {
            let computed = candidate.encoder.computation(segmentation.method.output())?;
            Ok((candidate.name.to_owned(), computed))
        };
        let candidates = self.candidates.iter().map(candidate).collect::<Result<Vec<_>>>()?;
        let settings = segmentation.start()?;
        let parts = (program(), self.method.protocol(), settings.size, candidates, clip.fingerprint(memory)?);
        let json = serde_json::to_vec(&parts).map_err(Error::Json)?;
        Ok(format!("video-{}", &blake3::hash(&json).to_hex()[..24]))
    }
}

/// What stands in the folder of a clip once all is there. Masks that were lost or damaged since make another one.
fn listing(folder: &Path, key: &str) -> Result<String> {
    let mut lines = Vec::new();
    for folder in [folder.to_path_buf(), folder.join(MASKS)] {
        let failed = |source| lejepa_data::Error::Io { action: "read", path: folder.clone(), source };
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Others' files beside them are in nobody's way.
            let is_own = FILMS.contains(&&*name) || folder.ends_with(MASKS) && name.ends_with(".png");
            if is_own && entry.file_type().map_err(failed)?.is_file() {
                let content = std::fs::read(entry.path()).map_err(failed)?;
                lines.push(format!("{} {name}\n", &blake3::hash(&content).to_hex()[..32]));
            }
        }
    }
    lines.sort_unstable();
    Ok(format!("{key}\n{}", lines.concat()))
}

/// Removes what an earlier evaluation has found in a clip.
pub(crate) fn remove(report: &Path, clip: &str) -> Result<()> {
    let folders = METHODS.map(|method| report.join(FOLDER).join(method).join(clip));
    folders.iter().filter(|folder| folder.join(MARK).is_file()).try_for_each(|folder| remove_folder(folder))
}

fn remove_folder(folder: &Path) -> Result<()> {
    let failed = |source| lejepa_data::Error::Io { action: "remove", path: folder.into(), source };
    Ok(std::fs::remove_dir_all(folder).map_err(failed)?)
}

/// The encoders that have what a method looks at.
fn encoders<'a>(video: &'a Video<'a>, method: &SegmentationMethod) -> Vec<SegmentationCandidate<'a>> {
    let encoder = |candidate: &'a Candidate<'a>| match candidate.source {
        FeatureSource::Encoder(encoder) if encoder.has(method.output()) => {
            Some(SegmentationCandidate { name: &candidate.name, encoder })
        }
        _ => None,
    };
    video.candidates.iter().filter_map(encoder).collect()
}
