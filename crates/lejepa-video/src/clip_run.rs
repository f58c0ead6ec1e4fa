//! One clip: its frames in, its masks, film and scores out. A few frames are in memory at a time.

use std::path::{Path, PathBuf};

use lejepa_data::Image;
use lejepa_embed::Encoder;
use lejepa_picture::Overlay;
use ndarray::{Array4, Ix4};

use super::centred_box::centred_box;
use super::film::Film;
use super::ground_truth::GroundTruth;
use super::mask_maker::MaskMaker;
use super::palette::bright_colour;
use super::score::{Frames, TrueFrame};
use super::scoreboard::Scoreboard;
use super::segmentation::{Watcher, whole_frame};
use super::stills::Stills;
use super::{
    Clip, ClipReport, Frame, FrameSource, LabelMap, Segmentation, SegmentationEvent, SegmentationMethod,
};
use crate::{Error, Result};

/// Frames that are read and computed together.
const FRAMES_AT_A_TIME: usize = 8;
/// The folder of masks.
pub(super) const MASKS: &str = "masks";
/// Unreadable frames that are named in the report.
const NAMED: usize = 10;
/// How much of an object's colour is seen over it.
const OPACITY: f32 = 0.5;

pub(super) struct ClipRun<'a> {
    segmentation: &'a Segmentation<'a>,
    clip: &'a Clip,
    folder: PathBuf,
    source: std::iter::Take<FrameSource>,
    truth: Option<GroundTruth>,
    board: Scoreboard,
    /// One for each candidate, from the first frame on.
    makers: Vec<MaskMaker>,
    first_mask: Option<LabelMap>,
    film: Option<Film>,
    stills: Stills,
    report: ClipReport,
}

impl<'a> ClipRun<'a> {
    pub(super) fn start(segmentation: &'a Segmentation<'a>, clip: &'a Clip, folder: &Path) -> Result<Self> {
        refuse_to_write_over(clip, &folder.join(MASKS))?;
        let most = segmentation.most_frames.unwrap_or(usize::MAX);
        let source = FrameSource::open(&clip.frames, segmentation.ffmpeg)?.take(most);
        let truth = clip.masks.as_deref().map(GroundTruth::open).transpose()?;
        let judged = match segmentation.method {
            SegmentationMethod::Attention { .. } => Frames::All,
            SegmentationMethod::Propagation { .. } => Frames::NotTheLast,
        };
        let objects = truth.as_ref().map(GroundTruth::objects).unwrap_or_default();
        let board = Scoreboard::new(objects, judged);
        let report = ClipReport {
            name: clip.name.clone(),
            frames: 0,
            frames_with_truth: 0,
            left_out: 0,
            left_out_such_as: Vec::new(),
            remarks: truth
                .iter()
                .flat_map(|truth| [late_beginning(truth), later_objects(truth)])
                .flatten()
                .collect(),
            rows: Vec::new(),
            stills: Vec::new(),
        };
        let (makers, folder) = (Vec::new(), folder.to_path_buf());
        Ok(Self {
            segmentation,
            clip,
            folder,
            source,
            truth,
            board,
            makers,
            first_mask: None,
            film: None,
            stills: Stills::new(),
            report,
        })
    }

    pub(super) fn finish(mut self, watch: &mut Watcher<'_>) -> Result<ClipReport> {
        let stop =
            |asked: std::ops::ControlFlow<()>| if asked.is_break() { Err(Error::Stopped) } else { Ok(()) };
        let frames = self.source.size_hint().1.filter(|&most| most < usize::MAX);
        stop(watch(SegmentationEvent::Clip { name: &self.clip.name, frames }))?;
        loop {
            let frames = self.read(watch)?;
            if frames.is_empty() {
                break;
            }
            self.segment(&frames)?;
            stop(watch(SegmentationEvent::Frames(frames.len())))?;
        }
        if self.report.frames == 0 {
            return Err(Error::NoFrames { path: self.clip.frames.clone() });
        }
        if let Some(film) = self.film.take() {
            film.finish(&|file| self.segmentation.commit(file))?;
        }
        if let Some(masks) = self.clip.masks.as_ref().filter(|_| self.report.frames_with_truth == 0) {
            return Err(Error::MasksOfOthers { path: masks.clone() });
        }
        self.report.rows = self.board.finish();
        self.report.stills = self.stills.finish();
        Ok(self.report)
    }

    /// The next few frames; those that cannot be read are left out.
    fn read(&mut self, watch: &mut Watcher<'_>) -> Result<Vec<Frame>> {
        let mut frames = Vec::new();
        while frames.len() < FRAMES_AT_A_TIME {
            match self.source.next() {
                None => break,
                Some(Ok(frame)) => frames.push(frame),
                Some(Err(error)) => {
                    if watch(SegmentationEvent::LeftOut(&error)).is_break() {
                        return Err(Error::Stopped);
                    }
                    self.report.left_out += 1;
                    if self.report.left_out <= NAMED {
                        self.report.left_out_such_as.push(sentence(&error));
                    }
                }
            }
        }
        Ok(frames)
    }

    fn segment(&mut self, frames: &[Frame]) -> Result<()> {
        if let (true, Some(first)) = (self.makers.is_empty(), frames.first()) {
            self.make_makers(first)?;
        }
        let values =
            self.segmentation.candidates.iter().map(|candidate| self.compute(candidate.encoder, frames));
        let values = values.collect::<Result<Vec<_>>>()?;
        if let (0, Some(first), Some(values)) = (self.report.frames, frames.first(), values.first()) {
            self.remark_small_objects(first, self.segmentation.method.grid(values.dim()))?;
        }
        for (index, frame) in frames.iter().enumerate() {
            let size = (frame.image.height(), frame.image.width());
            let truth = self.truth.as_ref().map(|truth| truth.of(frame)).transpose()?.flatten();
            for (number, candidate) in self.segmentation.candidates.iter().enumerate() {
                let values = values[number].index_axis(ndarray::Axis(0), index);
                let masks = self.makers[number].next(values, &frame.image)?;
                if let Some(truth) = &truth {
                    masks.score(candidate.name, truth, size, &mut self.board);
                }
                if number == 0 {
                    self.write(frame, &masks.labels(size))?;
                }
            }
            if let Some(truth) = &truth {
                self.score_baselines(truth, size);
                self.report.frames_with_truth += 1;
            }
            self.report.frames += 1;
        }
        Ok(())
    }

    /// The mask of the first frame is known now, if there is one.
    fn make_makers(&mut self, first: &Frame) -> Result<()> {
        if let SegmentationMethod::Propagation { first_mask, .. } = &self.segmentation.method {
            let of_truth = || self.truth.as_ref().map(|truth| truth.mask(&first.name)).transpose();
            let mask = match first_mask {
                Some(given) => Some(given.clone()),
                None => of_truth()?.flatten(),
            };
            let mask = mask.filter(|mask| !mask.objects().is_empty());
            let missing = || Error::NoFirstMask { clip: self.clip.name.clone() };
            self.first_mask = Some(mask.ok_or_else(missing)?);
        }
        let maker = |_| MaskMaker::new(&self.segmentation.method, self.first_mask.as_ref());
        self.makers = self.segmentation.candidates.iter().map(maker).collect::<Result<_>>()?;
        Ok(())
    }

    /// An object within a single cell of the encoder's grid can hardly be found.
    fn remark_small_objects(&mut self, first: &Frame, (rows, columns): (usize, usize)) -> Result<()> {
        let Some(truth) = &self.truth else { return Ok(()) };
        let Some(mask) = truth.mask(&first.name)? else { return Ok(()) };
        let (height, width) = mask.labels.dim();
        let cell = (height * width) as f64 / (rows * columns).max(1) as f64;
        let on_the_grid = mask.resized((rows, columns)).objects();
        for &label in truth.objects() {
            let pixels = mask.labels.iter().filter(|found| **found == label).count();
            if pixels > 0 && ((pixels as f64) < cell || !on_the_grid.contains(&label)) {
                self.report.remarks.push(format!(
                    "object {label} is smaller than a cell of the {rows}x{columns} patches, in pixels: {pixels} of {cell:.0}"
                ));
            }
        }
        Ok(())
    }

    /// Maps of whole frames, `(frames, ...)`.
    fn compute(&self, encoder: &Encoder, frames: &[Frame]) -> Result<Array4<f32>> {
        let preprocess = whole_frame(encoder.preprocess());
        let output = self.segmentation.method.output();
        let values = encoder.compute_with(output, frames.len(), |index, pixels| {
            preprocess.apply_into(&frames[index].image, pixels)
        })?;
        let shape = values.shape().to_vec();
        values.into_dimensionality::<Ix4>().map_err(|_| {
            let problem = format!("output {} has the shape {shape:?}", output.name());
            lejepa_embed::Error::NotAnEncoder { name: encoder.name().into(), problem }.into()
        })
    }

    fn score_baselines(&mut self, truth: &TrueFrame, size: (usize, usize)) {
        if let Some(first) = &self.first_mask {
            // The first frame is not judged.
            if self.report.frames == 0 {
                return;
            }
            self.board.add("first mask, kept", &truth.score_labels(&first.resized(size)));
        }
        self.board.add("centred box", &truth.score(&centred_box(size)));
    }

    fn write(&mut self, frame: &Frame, labels: &LabelMap) -> Result<()> {
        let mask = self.folder.join(MASKS).join(format!("{}.png", frame.name));
        self.segmentation.put(&mask, &labels.to_png(&mask)?)?;
        let drawn = overlaid(&frame.image, labels)?;
        if self.film.is_none() {
            self.film = Some(Film::create(&self.folder, &drawn, frame.duration, self.segmentation.ffmpeg)?);
        }
        self.film.as_mut().map_or(Ok(()), |film| film.add(&drawn, frame.duration))?;
        self.stills.next(&frame.name, || {
            let truth = self.truth.as_ref().map(|truth| truth.mask(&frame.name)).transpose()?.flatten();
            let truth = truth.map(|labels| overlaid(&frame.image, &labels)).transpose()?;
            Ok((drawn, truth))
        })
    }
}

/// Objects are not those of the first frame.
fn late_beginning(truth: &GroundTruth) -> Option<String> {
    let remark = |frame| {
        format!("the first masks are empty: objects are those of the first that has any, frame: {frame}")
    };
    truth.begin().map(remark)
}

/// Objects that are not judged.
fn later_objects(truth: &GroundTruth) -> Option<String> {
    let labels: Vec<String> = truth.later().iter().map(u8::to_string).collect();
    let remark =
        || format!("objects that appear after the first mask and are not judged: {}", labels.join(", "));
    (!labels.is_empty()).then(remark)
}

/// Masks have the names of frames and of true masks.
fn refuse_to_write_over(clip: &Clip, folder: &Path) -> Result<()> {
    let same = |other: &Path| match (folder.canonicalize(), other.canonicalize()) {
        (Ok(folder), Ok(other)) => folder == other,
        _ => false,
    };
    match same(&clip.frames) || clip.masks.as_deref().is_some_and(same) {
        true => Err(Error::WritesOver { path: folder.into() }),
        false => Ok(()),
    }
}

/// The objects in their colours over the frame.
fn overlaid(image: &Image, labels: &LabelMap) -> Result<Image> {
    let mut drawn = image.clone().with_channels(3);
    for label in labels.objects() {
        let overlay = Overlay { colour: bright_colour(label), opacity: OPACITY };
        drawn = overlay.draw_mask(&drawn, labels.object(label).view())?;
    }
    Ok(drawn)
}

/// An error with its causes.
fn sentence(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
