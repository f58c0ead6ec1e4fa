//! The clips of an evaluation: masks by attention, and by following the first of the true ones.

use std::ops::ControlFlow;
use std::path::Path;

use lejepa_data::Claim;

use lejepa_picture::ATTENTION_MASS;
use lejepa_video::{
    AttentionSettings, Clip, ClipFolder, ClipReport, ClipSet, Ffmpeg, PropagationSettings, Segmentation,
    SegmentationCandidate, SegmentationEvent, SegmentationMethod,
};

use crate::features::FeatureSource;
use crate::report::Report;
use crate::run::evaluation::{HASHES, Observer};
use crate::run::program::program;
use crate::run::{Candidate, Evaluation, Event, Video};
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

/// Folders in which masks of clips lie.
const FOLDER: &str = "video";
const METHODS: [&str; 2] = ["attention", "propagation"];

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
        let claim = evaluation.folder.claimed()?;
        let segmentation = Segmentation {
            method: self.method.clone(),
            candidates: &self.candidates,
            ffmpeg: self.ffmpeg,
            most_frames: None,
            list: self.set.list.as_deref(),
            notes: &self.set.notes,
            out: &out,
            claim: Some(&*claim),
            command: evaluation.command,
        };
        let mut video = segmentation.start()?;
        for &clip in &self.clips {
            match self.clip(&segmentation, clip, (evaluation, &*claim), observer) {
                Err(Error::Video(error)) if error.leaves_out_a_clip() => {
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
        (evaluation, claim): (&Evaluation<'_>, &Claim),
        observer: &mut Observer<'_>,
    ) -> Result<ClipReport> {
        let key = self.key(segmentation, clip, &evaluation.cache.join(HASHES))?;
        let folder = ClipFolder::new(segmentation.out.join(&clip.name));
        if let Some(found) = evaluation.folder.read_cell(&key).filter(|_| folder.holds(&key)) {
            return Ok(found);
        }
        // Masks of something else are not left behind, but what is not of an evaluation stays.
        if folder.is_there() {
            if !folder.is_marked() && !evaluation.folder.overwrites() {
                return Err(lejepa_data::Error::Exists { path: folder.path().into() }.into());
            }
            folder.remove(claim)?;
        }
        folder.begin(claim)?;
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
        let found = segmentation.segment(clip, folder.path(), &mut watch)?;
        folder.finish(claim, &key)?;
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

/// Removes what an earlier evaluation has found in a clip.
pub(crate) fn remove(claim: &Claim, report: &Path, clip: &str) -> Result<()> {
    let folders = METHODS.map(|method| ClipFolder::new(report.join(FOLDER).join(method).join(clip)));
    Ok(folders.iter().filter(|folder| folder.is_marked()).try_for_each(|folder| folder.remove(claim))?)
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
