//! The result of an evaluation: one documented structure, rendered by others.

mod folder;
pub(crate) mod footnotes;
pub(crate) mod number;
pub(crate) mod paper;
pub(crate) mod remarks;
mod renderer;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod score_table;

pub use folder::ReportFolder;
pub(crate) use renderer::plain;
pub use renderer::{Html, Json, Markdown, RENDERERS, Rendered, Renderer, Spreadsheet, Terminal};

use lejepa_probe::Choice;
use lejepa_video::SegmentationReport;
use serde::{Deserialize, Serialize};

use crate::isotropy::{DemonstrationReport, IsotropyReport};
use crate::pictures::SetPictures;
use crate::sets::Shots;

/// Everything an evaluation found. Written as `report.json`; Markdown, CSV and HTML are made from it alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this structure.
    pub format: u32,
    /// Version of the program.
    pub version: String,
    /// The suite's name or file.
    pub suite: String,
    /// What the suite is for, in a sentence.
    pub about: String,
    /// Whether all was measured; not while the evaluation runs.
    pub complete: bool,
    /// The command line that made the report, and makes it again.
    pub command: String,
    /// Draws training images and what probes hold out.
    pub seed: u64,
    /// What is compared, in the order of the tables.
    pub candidates: Vec<CandidateInfo>,
    /// One entry per labelled set; the last may be incomplete while the evaluation runs.
    pub datasets: Vec<DatasetReport>,
    /// Sets of the suite that were not found.
    pub missing: Vec<MissingDataset>,
    /// The masks of clips, one entry per method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub videos: Vec<SegmentationReport>,
    /// The isotropy argument on simulated features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demonstration: Option<DemonstrationReport>,
}

impl Report {
    /// The version that this code writes.
    pub const FORMAT: u32 = 3;

    /// Whether anything was found yet.
    pub(crate) fn has_results(&self) -> bool {
        let Self {
            format: _,
            version: _,
            suite: _,
            about: _,
            complete: _,
            command: _,
            seed: _,
            candidates: _,
            datasets,
            missing: _,
            videos,
            demonstration,
        } = self;
        let of_set = |set: &DatasetReport| !set.results.is_empty() || !set.isotropy.is_empty();
        demonstration.is_some() || !videos.is_empty() || datasets.iter().any(of_set)
    }
}

/// One kind of features.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateInfo {
    /// A row's title, unlike all others of the report.
    pub name: String,
    /// Where the features come from: a file, or what a baseline is.
    pub description: String,
    /// Their kind in protocol strings, such as `cls`.
    pub feature: String,
    /// Their length.
    pub dim: usize,
    /// Hash of the encoder file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// A labelled set and all that was measured on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetReport {
    /// Its short name, such as `flowers102`.
    pub name: String,
    /// Where it lies.
    pub path: String,
    /// Fingerprints of training and test split.
    pub fingerprints: [String; 2],
    /// Training images from which samples are drawn.
    pub train: usize,
    /// Training images there are.
    pub train_available: usize,
    /// Test images used.
    pub test: usize,
    /// Test images there are.
    pub test_available: usize,
    /// What the training and the test images are, such as `training and validation split`.
    pub splits: [String; 2],
    /// Whether it is usually scored by the mean over classes of the accuracy within each.
    pub per_class: bool,
    /// Names of the classes, in the order of their labels.
    pub classes: Vec<String>,
    /// What a reader should know of the data, such as unreadable images.
    pub notes: Vec<String>,
    /// Which of its images candidates were trained on, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    /// One entry per candidate, probe and number of shots, in the order of measuring.
    pub results: Vec<ProbeResult>,
    /// Differences between candidates on the same draws and test images.
    pub comparisons: Vec<Comparison>,
    /// Numbers of the paper for this set.
    pub published: Vec<Published>,
    /// Bias and variance on features of several shapes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isotropy: Vec<CandidateIsotropy>,
    /// Maps and pictures of some test images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pictures: Option<SetPictures>,
}

/// The isotropy experiment on one kind of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateIsotropy {
    /// The name of its [`CandidateInfo`].
    pub candidate: String,
    /// What was found.
    pub found: IsotropyReport,
}

/// What one probe says of one kind of features, over all draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// The name of its [`CandidateInfo`].
    pub candidate: String,
    /// A column's title, such as `logistic`.
    pub probe: String,
    /// Training samples per class.
    pub shots: Shots,
    /// What exactly was done, to be put beside a published number.
    pub protocol: String,
    /// Mean over draws of the share of test images with the right class.
    pub accuracy: f64,
    /// Standard deviation over draws; none with a single one.
    pub deviation: Option<f64>,
    /// Where the accuracy lies with 95 % confidence.
    pub interval: Interval,
    /// Mean over classes of the accuracy within each, over all draws.
    pub class_mean: f64,
    /// Mean over draws of the share of test images whose class is among the five highest scores; none with
    /// five classes or fewer.
    pub top5: Option<f64>,
    /// The accuracy within every class, over all draws; none for a class without test images.
    pub class_accuracies: Vec<Option<f64>>,
    /// `[class, predicted class, test images]` where there are any, summed over draws.
    pub confusion: Vec<[usize; 3]>,
    /// The single draws.
    pub draws: Vec<DrawResult>,
    /// What a reader should know of this number, such as classes with fewer images than shots.
    pub notes: Vec<String>,
}

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// What varies.
    pub over: Source,
}

/// Where the uncertainty of a number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The drawn training samples and the test images (Wilson, with the standard error of both).
    DrawsAndTestImages,
    /// The test images (Wilson).
    TestImages,
}

/// One draw of training samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawResult {
    /// Its number; samples are listed in `draws/` beside the report.
    pub draw: usize,
    /// Training samples.
    pub train: usize,
    /// Share of test images with the right class.
    pub accuracy: f64,
    /// Share of test images whose class is among the five highest scores.
    pub top5: f64,
    /// The setting chosen on held-out training data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// Time to fit and score, in seconds; of several k-NN probes that of their common pass.
    pub seconds: f64,
}

/// How two candidates differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The probe's title.
    pub probe: String,
    /// Training samples per class.
    pub shots: Shots,
    /// A candidate.
    pub first: String,
    /// Another.
    pub second: String,
    /// Accuracy of the first less that of the second.
    pub difference: f64,
    /// Probability of a difference at least as large by chance alone.
    pub p: f64,
    /// By what test.
    pub test: PairedTest,
}

/// How a difference is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairedTest {
    /// Student's t on the differences of all draws and test images, with the standard error of both; never less
    /// than that of the draws alone.
    TwoWayT,
    /// McNemar's exact test on the test images that one of the two gets right.
    McNemar,
}

/// A number of the paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The file in `eval/paper`.
    pub table: String,
    /// The method.
    pub method: String,
    /// The encoder.
    pub arch: String,
    /// What it was pretrained on.
    pub pretraining: String,
    /// `frozen` or `finetuned`.
    pub protocol: String,
    /// Training samples per class.
    pub shots: Shots,
    /// The accuracy, between 0 and 1.
    pub accuracy: f64,
}

/// A set that was not found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingDataset {
    /// Its short name.
    pub name: String,
    /// Folders that were looked for.
    pub folders: Vec<String>,
    /// Where it comes from.
    pub source: String,
}
