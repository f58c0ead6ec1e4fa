//! Scores frozen features, draws what encoders see and writes reports.
//!
//! A [`Suite`] names the probes, [`Features`] are extracted once per set and shared by all of them,
//! and a [`Report`] holds every score together with its protocol string. [`patch_colours`] and
//! [`AttentionPictures`] draw what an encoder sees in an image.
//!
//! ```
//! use lejepa_eval::{Features, Knn, predicted};
//! use ndarray::array;
//!
//! let train = Features::labelled(array![[1., 0.], [0.9, 0.1], [0., 1.]], vec![0, 0, 1], 2)?;
//! let scores = Knn { k: 1, temperature: 0.07 }.scores(&train, &array![[0.1, 0.8], [2., 0.1]])?;
//! assert_eq!(predicted(&scores), [1, 0]);
//! # Ok::<(), lejepa_eval::Error>(())
//! ```

mod cell;
mod directions;
mod draw;
mod error;
mod evaluation;
mod extraction;
mod feature_cache;
mod feature_file;
mod features;
mod footnotes;
mod html;
mod identity;
mod image_list;
mod isotropy;
mod isotropy_table;
mod known_dataset;
mod labelled_set;
mod map;
mod markdown;
mod memory;
mod number;
mod paper;
mod picture;
mod pixels;
mod program;
mod remarks;
mod report;
mod report_folder;
mod row_hashes;
#[cfg(test)]
mod samples;
mod score_table;
mod set_features;
mod set_pictures;
mod set_run;
mod shots;
mod spreadsheet;
mod statistics;
mod suite;
mod task;
mod training_overlap;
mod video;
mod video_run;

pub use draw::{Draw, Drawing};
pub use error::{Error, Result};
pub use evaluation::{Candidate, Evaluation, Event, Video};
pub use extraction::{Extracted, Extraction, Key, Shard, Share, Workplace};
pub use feature_cache::{CacheEntry, FeatureCache};
pub use feature_file::{FeatureFile, FeatureFormat, FeaturePrecision};
pub use features::FeatureSource;
pub use html::to_html;
pub use image_list::{ImageInfo, ImageList};
pub use isotropy::*;
pub use known_dataset::KnownDataset;
pub use labelled_set::LabelledSet;
pub use lejepa_probe::{Features, Knn, Probe, Ridge, RidgeSolution, predicted};
pub use map::{EmbeddingMap, MapMethod, Sprite};
pub use markdown::{to_markdown, to_table};
pub use picture::*;
pub use pixels::pixels_title;
pub use report::{
    CandidateInfo, CandidateIsotropy, Comparison, DatasetReport, DrawResult, Interval, MissingDataset,
    PairedTest, ProbeResult, Published, Report, Source,
};
pub use report_folder::ReportFolder;
pub use set_pictures::{AttentionJpegs, CandidatePictures, PatchPictures, Pictures, SetPictures, ShownImage};
pub use shots::Shots;
pub use spreadsheet::to_csv;
pub use suite::{Baseline, Suite};
pub use video::{
    AttentionMasks, AttentionSettings, Clip, ClipChoice, ClipReport, ClipRow, ClipSet, Contour, Ffmpeg,
    Frame, FrameSource, HeadMasks, LabelMap, ObjectScore, Propagation, PropagationSettings, Score,
    Segmentation, SegmentationCandidate, SegmentationEvent, SegmentationMethod, SegmentationReport, SetRow,
    Still, jaccard,
};
