//! Scores frozen features, draws what encoders see and writes reports.
//!
//! A [`Suite`] names the probes, features are extracted once per set and shared by all of them, and a
//! [`Report`] holds every score together with its protocol string.
//!
//! ```text
//! suite       which probes, with how many samples, and what else is drawn and measured
//! sets        labelled images, and which of them a probe learns from
//! features    what encoders make of images: extraction, cache, files
//! run         an evaluation at work: sets, probes, draws, statistics
//! isotropy    bias and variance on features of several shapes, with tables and figures of its own
//! pictures    maps and pictures of a set
//! report      everything found, and its renderers
//! ```
//!
//! ```
//! use lejepa_eval::Suite;
//! use lejepa_eval::sets::Shots;
//!
//! let suite = Suite::load("quick")?;
//! assert_eq!(suite.shots, [Shots::All]);
//! assert!(suite.probe.iter().all(|probe| !probe.title().is_empty()));
//! # Ok::<(), lejepa_eval::Error>(())
//! ```

mod error;
pub mod features;
pub mod isotropy;
pub mod pictures;
pub mod report;
mod run;
pub mod sets;
pub mod suite;

pub use error::{Error, Result};
pub use features::FeatureSource;
pub use report::{Report, ReportFolder};
pub use run::{Candidate, Evaluation, Event, Video};
pub use sets::LabelledSet;
pub use suite::Suite;
