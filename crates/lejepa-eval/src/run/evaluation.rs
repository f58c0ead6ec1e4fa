//! Runs a suite: every probe on every kind of features of every set.

use std::ops::ControlFlow;
use std::path::Path;

use lejepa_data::{Hashing, Output};
use lejepa_video::{ClipSet, Ffmpeg};

use crate::features::FeatureSource;
use crate::report::{CandidateInfo, DatasetReport, MissingDataset, Report, ReportFolder};
use crate::run::identity::Identity;
use crate::run::set_run::SetRun;
use crate::run::video_run::VideoRun;
use crate::sets::overlap::overlaps;
use crate::sets::{LabelledSet, Shots};
use crate::suite::Suite;
use crate::{Error, Result};

/// Features to be scored.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// A row's title.
    pub name: String,
    /// A file, or what a baseline is.
    pub description: String,
    /// Where they come from.
    pub source: FeatureSource<'a>,
}

/// The folder beside extracted features in which hashes of the data's files are remembered.
pub(crate) const HASHES: &str = "hashes";

/// What is to be scored with what.
pub struct Evaluation<'a> {
    /// The probes.
    pub suite: &'a Suite,
    /// The sets.
    pub datasets: &'a [LabelledSet],
    /// Sets that the suite would like to see.
    pub missing: Vec<MissingDataset>,
    /// The rows of the tables.
    pub candidates: &'a [Candidate<'a>],
    /// Clips that are segmented too.
    pub video: Option<Video<'a>>,
    /// The command line, for the report.
    pub command: &'a str,
    /// Folder of extracted features.
    pub cache: &'a Path,
    /// Where the report is written after every probe.
    pub folder: &'a ReportFolder,
}

/// Clips, and what they are segmented with.
pub struct Video<'a> {
    /// The clips.
    pub set: &'a ClipSet,
    /// Encoders, perhaps at another size than for images; others than encoders are passed over.
    pub candidates: &'a [Candidate<'a>],
    /// An `ffmpeg`, for films in and out.
    pub ffmpeg: Option<&'a Ffmpeg>,
}

/// What an evaluation tells its caller, who may stop it.
#[derive(Debug)]
pub enum Event<'a> {
    /// Files are read, to see whether their content is known.
    Hashing {
        /// The set.
        dataset: &'a str,
        /// How far that is.
        bytes: Hashing,
    },
    /// Features of this many images are about to be extracted.
    Extracting {
        /// The set.
        dataset: &'a str,
        /// The candidate.
        candidate: &'a str,
        /// Images of both splits.
        images: usize,
    },
    /// This many more images are done.
    Extracted(usize),
    /// A probe is about to be fitted.
    Probing {
        /// The set.
        dataset: &'a str,
        /// The candidate.
        candidate: &'a str,
        /// The probe's title.
        probe: &'a str,
        /// Training samples per class.
        shots: Shots,
        /// The number of the draw, from 0.
        draw: usize,
    },
    /// This share of the fit is done, between 0 and 1.
    Probed(f64),
    /// The isotropy experiment is about to run on features.
    Shaping {
        /// The set.
        dataset: &'a str,
        /// The candidate.
        candidate: &'a str,
    },
    /// Maps and pictures are about to be drawn.
    Drawing {
        /// The set.
        dataset: &'a str,
        /// The candidate.
        candidate: &'a str,
    },
    /// The isotropy argument is about to be simulated.
    Demonstrating,
    /// A clip is about to be segmented.
    Segmenting {
        /// How.
        method: &'a str,
        /// The clip.
        clip: &'a str,
        /// Its frames, if their number is known.
        frames: Option<usize>,
    },
    /// This many more frames have masks.
    Segmented(usize),
    /// A frame cannot be read.
    LeftOut(&'a lejepa_video::Error),
    /// Something that a reader of the numbers should know.
    Noted {
        /// The set.
        dataset: &'a str,
        /// What.
        note: &'a str,
    },
    /// The report has got a result more, and is written.
    Scored(&'a Report),
}

/// A caller who listens.
pub(crate) struct Observer<'a> {
    pub(crate) observe: &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
}

impl Observer<'_> {
    /// Says what happens; an error if the caller wants the work to end.
    pub(crate) fn tell(&mut self, event: Event<'_>) -> Result<()> {
        match (self.observe)(event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Stopped),
        }
    }
}

impl Evaluation<'_> {
    /// Scores every candidate with every probe on every set. `observe` is told what happens and may stop
    /// the work: that is [`Error::Stopped`], and the same evaluation goes on later.
    pub fn run(&self, observe: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>) -> Result<Report> {
        let mut observer = Observer { observe };
        let _work = self.folder.lock()?;
        let hashes = self.cache.join(HASHES);
        self.datasets.iter().try_for_each(|dataset| dataset.identify(&hashes, &mut observer))?;
        let video = self.video.as_ref().map(|video| (video, hashes.as_path()));
        let identity = Identity::new(self.suite, self.datasets, self.candidates, video)?;
        let videos = self.video.as_ref().map(VideoRun::plan).transpose()?.unwrap_or_default();
        let mut report = Report {
            format: Report::FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            suite: self.suite.name.clone(),
            about: self.suite.about.clone(),
            complete: false,
            command: self.command.into(),
            seed: self.suite.seed,
            candidates: self.candidates.iter().map(Candidate::info).collect::<Result<_>>()?,
            datasets: Vec::new(),
            missing: self.missing.clone(),
            videos: Vec::new(),
            demonstration: None,
        };
        self.folder.claim(&identity)?;
        if let Some(demonstration) = &self.suite.demonstration {
            observer.tell(Event::Demonstrating)?;
            report.demonstration = Some(demonstration.run()?);
            self.folder.write(&report)?;
            observer.tell(Event::Scored(&report))?;
        }
        for dataset in self.datasets {
            let seen = overlaps(dataset, self.candidates, &hashes)?;
            report.datasets.push(DatasetReport { seen, ..dataset.report(self.suite)? });
            SetRun::new(self, dataset, &mut report, &mut observer).run()?;
        }
        for video in videos {
            video.run(self, &mut report, &mut observer)?;
        }
        report.complete = true;
        self.folder.write(&report)?;
        Ok(report)
    }
}

impl Candidate<'_> {
    fn info(&self) -> Result<CandidateInfo> {
        let fingerprint = match self.source {
            FeatureSource::Encoder(encoder) => Some(encoder.fingerprint()),
            FeatureSource::Pixels(_) => None,
        };
        Ok(CandidateInfo {
            name: self.name.clone(),
            description: self.description.clone(),
            feature: self.source.tag(Output::Embedding).into(),
            dim: self.source.dim(),
            fingerprint,
        })
    }
}
