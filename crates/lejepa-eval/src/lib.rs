//! Scores frozen features and writes reports.
//!
//! A [`Suite`] names the probes, [`Features`] are extracted once per set and shared by all of them,
//! and a [`Report`] holds every score together with its protocol string.
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

mod error;
mod evaluate;
mod extraction;
mod feature_file;
mod features;
mod image_list;
mod markdown;
mod report;
mod suite;

pub use error::{Error, Result};
pub use evaluate::{Candidate, Evaluation, EvaluationData, Event};
pub use extraction::{Extracted, Extraction};
pub use feature_file::FeatureFormat;
pub use features::{FeatureSource, extract};
pub use image_list::{ImageInfo, ImageList};
pub use lejepa_probe::{Features, Knn, Ridge, RidgeSolution, predicted};
pub use markdown::{to_markdown, to_table};
pub use report::{DataInfo, FeatureScores, Report, Score};
pub use suite::{Probe, Suite};
