//! Segments clips with an encoder, and says how good the masks are where true ones are known.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lejepa_data::{AtomicFile, Claim, Output, Preprocess, ResizeRule};
use lejepa_embed::Encoder;

use super::clip_run::ClipRun;
use super::{AttentionSettings, Clip, ClipReport, Ffmpeg, LabelMap, PropagationSettings, SegmentationReport};
use crate::{Error, Result};

/// How masks are made.
#[derive(Debug, Clone, PartialEq)]
pub enum SegmentationMethod {
    /// Of the attention of the class token in the last block.
    Attention {
        /// How attention becomes masks.
        settings: AttentionSettings,
        /// The head whose masks are written, from 1; that of the mean over heads if absent.
        head: Option<usize>,
    },
    /// By following a first mask.
    Propagation {
        /// What is looked at.
        settings: PropagationSettings,
        /// The mask of the first frame; the true one if absent.
        first_mask: Option<LabelMap>,
    },
}

/// An encoder with its name in tables.
#[derive(Debug, Clone, Copy)]
pub struct SegmentationCandidate<'a> {
    /// Such as `encoder`.
    pub name: &'a str,
    /// The encoder.
    pub encoder: &'a Encoder,
}

/// Everything that decides a segmentation.
pub struct Segmentation<'a> {
    /// How masks are made.
    pub method: SegmentationMethod,
    /// The encoder whose masks are written, and others that are only scored.
    pub candidates: &'a [SegmentationCandidate<'a>],
    /// An `ffmpeg`, for films in and out.
    pub ffmpeg: Option<&'a Ffmpeg>,
    /// The most frames of a clip that are looked at.
    pub most_frames: Option<usize>,
    /// What the clips are of their set, for the protocol string.
    pub list: Option<&'a str>,
    /// What a reader should know about the clips.
    pub notes: &'a [String],
    /// Where everything is written to.
    pub out: &'a Path,
    /// The right to write there, if somebody else may have written there too.
    pub claim: Option<&'a Claim>,
    /// What was typed.
    pub command: &'a str,
}

/// What a segmentation is doing.
#[derive(Debug, Clone, Copy)]
pub enum SegmentationEvent<'a> {
    /// A clip begins.
    Clip {
        /// Its name.
        name: &'a str,
        /// Its frames, if their number is known.
        frames: Option<usize>,
    },
    /// So many more frames are done.
    Frames(usize),
    /// A frame cannot be read.
    LeftOut(&'a Error),
}

/// Told of events, and asked whether to go on.
pub(super) type Watcher<'a> = dyn FnMut(SegmentationEvent<'_>) -> ControlFlow<()> + 'a;

impl SegmentationMethod {
    /// What it needs of an encoder.
    pub fn output(&self) -> Output {
        match self {
            Self::Attention { .. } => Output::ClsAttention,
            Self::Propagation { .. } => Output::PatchTokens,
        }
    }

    /// Rows and columns of patches in what it needs.
    ///
    /// # Shapes
    /// - `(frames, heads, rows, columns)` or `(frames, rows, columns, dim)`
    pub(super) fn grid(&self, shape: (usize, usize, usize, usize)) -> (usize, usize) {
        match self {
            Self::Attention { .. } => (shape.2, shape.3),
            Self::Propagation { .. } => (shape.1, shape.2),
        }
    }

    /// Its name and settings in a protocol string.
    pub fn protocol(&self) -> String {
        match self {
            Self::Attention { settings: AttentionSettings { mass, smoothing }, .. } => {
                format!("attention:mass{mass}:smoothing{smoothing}")
            }
            Self::Propagation { settings, .. } => {
                let PropagationSettings { context, neighbourhood, top, temperature } = settings;
                format!("propagation:context1+{context}:neighbourhood{neighbourhood}:top{top}:T{temperature}")
            }
        }
    }
}

impl Segmentation<'_> {
    /// Segments clips. Masks and films are written as they come, the report after every clip. Of several
    /// clips each has a folder of its own.
    pub fn run(
        &self,
        clips: &[Clip],
        watch: &mut dyn FnMut(SegmentationEvent<'_>) -> ControlFlow<()>,
    ) -> Result<SegmentationReport> {
        let mut report = self.start()?;
        for clip in clips {
            let folder = if clips.len() == 1 { self.out.to_path_buf() } else { self.out.join(&clip.name) };
            match self.segment(clip, &folder, watch) {
                Err(error) if error.leaves_out_a_clip() && clips.len() > 1 => {
                    report.notes.push(format!("left out: {error}"));
                    let _ = watch(SegmentationEvent::LeftOut(&error));
                }
                found => report.clips.push(found?),
            }
            report.summarise();
            self.write(&report)?;
        }
        Ok(report)
    }

    /// A report without clips.
    pub fn start(&self) -> Result<SegmentationReport> {
        let first = self.candidates.first().ok_or(Error::NoCandidate)?;
        let Preprocess { crop_height, crop_width, .. } = *first.encoder.preprocess();
        Ok(SegmentationReport {
            command: self.command.into(),
            protocol: self.protocol((crop_height, crop_width)),
            encoder: first.encoder.name().into(),
            size: (crop_height, crop_width),
            notes: self.notes.to_vec(),
            clips: Vec::new(),
            rows: Vec::new(),
        })
    }

    fn protocol(&self, (height, width): (usize, usize)) -> String {
        let mut protocol = format!("{}:{height}x{width}", self.method.protocol());
        if let Some(list) = self.list {
            protocol.push_str(&format!(":clips{list}"));
        }
        if let Some(most) = self.most_frames {
            protocol.push_str(&format!(":frames{most}"));
        }
        protocol
    }

    /// Segments one clip into a folder.
    pub fn segment(
        &self,
        clip: &Clip,
        folder: &Path,
        watch: &mut dyn FnMut(SegmentationEvent<'_>) -> ControlFlow<()>,
    ) -> Result<ClipReport> {
        ClipRun::start(self, clip, folder)?.finish(watch)
    }

    fn write(&self, report: &SegmentationReport) -> Result<()> {
        let json = serde_json::to_string_pretty(report).map_err(Error::Json)? + "\n";
        let files =
            [("report.json", json), ("report.md", report.to_markdown()), ("report.html", report.to_html())];
        for (name, text) in files {
            self.put(&self.path(name), text.as_bytes())?;
        }
        Ok(())
    }

    /// Writes a file.
    pub(super) fn put(&self, path: &Path, content: &[u8]) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        let failed = |source| lejepa_data::Error::Io { action: "write", path: path.into(), source };
        file.write_all(content).map_err(failed)?;
        self.commit(file)
    }

    /// Puts a file into its place.
    pub(super) fn commit(&self, file: AtomicFile) -> Result<()> {
        let put = match self.claim {
            Some(claim) => claim.commit(file),
            None => file.commit(),
        };
        Ok(put?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }
}

/// The encoder's preprocessing, but of the whole frame: nothing is cut off, the frame is squashed where its
/// shape is another one.
pub(super) fn whole_frame(preprocess: &Preprocess) -> Preprocess {
    Preprocess { resize: ResizeRule::Squash, ..preprocess.clone() }
}
