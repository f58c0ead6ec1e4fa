//! An evaluation at work.
//!
//! ```text
//! Evaluation -> SetRun -> Task -> Cell        one probe, one number of shots, all draws
//!            -> VideoRun                      clips
//! ```
//!
//! What is measured is kept beside the report under the name of all that decides it, so that a stopped
//! evaluation goes on where it was.

pub(crate) mod cell;
pub(crate) mod evaluation;
pub(crate) mod identity;
mod memory;
pub(crate) mod program;
mod row_hashes;
pub(crate) mod set_features;
mod set_run;
mod statistics;
mod task;
pub(crate) mod video_run;

pub use evaluation::{Candidate, Evaluation, Event, Video};
