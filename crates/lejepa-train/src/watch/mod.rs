//! Looks at a run from time to time: the gauge and, where there are labels, k-NN and a linear probe.
//!
//! ```text
//! images -> features (images, dim) -> embeddings (images, projector dim)
//!           gauge: any isotropic Gaussian; k-NN, ridge      gauge: the standard normal
//! ```
//!
//! Nothing here is trained with the encoder: probes are fitted anew at every look, to features that
//! carry no gradient. A look is a pure function of the data and the weights: there is nothing to save for a
//! run that goes on, and runs with other seeds are looked at with the same images in the same splits.

mod config;
mod images;
mod log;
mod metrics;
mod probes;
mod watcher;

pub use config::WatchConfig;
pub use log::{WatchLog, read_watch};
pub use metrics::{GaugeMetrics, WatchMetrics};
pub use watcher::{EmbeddedImages, Watcher};
