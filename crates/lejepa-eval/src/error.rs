//! What can go wrong in an evaluation.

use std::path::PathBuf;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No suite has this name, and no file lies at this path.
    #[error("no suite named {name:?}: use {} or the path of a .toml file", known.join(", "))]
    UnknownSuite {
        /// What was asked for.
        name: String,
        /// What is built in.
        known: Vec<&'static str>,
    },
    /// The caller wanted the work to end; the same evaluation goes on later.
    #[error("stopped")]
    Stopped,
    /// A suite is not valid.
    #[error("invalid suite {name}: {problem}")]
    Suite {
        /// The suite's name or file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Probes need labels.
    #[error("image {index} of the {split} split has no label: probes need one folder per class in {}", path.display())]
    Unlabelled {
        /// The image.
        index: usize,
        /// The split.
        split: &'static str,
        /// The data.
        path: PathBuf,
    },
    /// A probe needs at least two classes and one sample.
    #[error("the training split needs at least two classes, got: {got}")]
    TooFewClasses {
        /// Classes that occur.
        got: usize,
    },
    /// Nothing to ask a probe about.
    #[error("no class has enough images for a test split: {}", path.display())]
    NoTestImages {
        /// The data.
        path: PathBuf,
    },
    /// Not a single image of a split could be read.
    #[error("none of the images of a split can be read: {dataset}")]
    NothingReadable {
        /// The set.
        dataset: String,
    },
    /// A feature is NaN or infinite.
    #[error("the features of {candidate} are not finite for the image: {image}")]
    NotFinite {
        /// Whose features.
        candidate: String,
        /// Of which image.
        image: String,
    },
    /// Nothing to draw from, or nothing to predict.
    #[error("the isotropy experiment needs at least {needed} {split} samples, got: {got}")]
    TooFewSamples {
        /// The split.
        split: &'static str,
        /// How many it takes.
        needed: usize,
        /// How many there are.
        got: usize,
    },
    /// Features that are all the same have no shape.
    #[error("the training features do not vary: there is nothing to whiten")]
    NoVariance,
    /// A mask that keeps nothing, or more than there is.
    #[error("the share of attention to keep must be above 0 and at most 1, got: {got}")]
    AttentionMass {
        /// The share.
        got: f64,
    },
    /// Attention is what a softmax gives.
    #[error("attention must be finite and not negative")]
    NotAttention,
    /// Nothing to make colours of.
    #[error("the features of patches are not finite")]
    PatchesNotFinite,
    /// An array of unexpected shape.
    #[error("features have an unexpected shape")]
    Shape(#[source] ndarray::ShapeError),
    /// No thread for a map.
    #[error("cannot start a thread")]
    Threads(#[source] rayon::ThreadPoolBuildError),
    /// Targets that cannot be compared.
    #[error("training and test targets are not of the same kind: {train} and {test}")]
    UnlikeTargets {
        /// Of the training split.
        train: String,
        /// Of the test split.
        test: String,
    },
    /// A file's name does not say what it should become.
    #[error("features are written as .npy, .safetensors or .parquet, got: {}", path.display())]
    FeatureFormat {
        /// The file's name.
        path: PathBuf,
    },
    /// A folder holds parts of something else.
    #[error("holds parts of another extraction (other images, encoder or options): {}", folder.display())]
    OtherExtraction {
        /// The folder.
        folder: PathBuf,
    },
    /// A part was changed or removed while it was needed.
    #[error("a part of the features is gone or damaged: {}", path.display())]
    LostPart {
        /// The part.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write")]
    Write(#[source] std::io::Error),
    /// A table could not be written.
    #[error("cannot write a table")]
    Csv(#[source] csv::Error),
    /// A Parquet file could not be written.
    #[error("cannot write Parquet")]
    Parquet(#[source] parquet::errors::ParquetError),
    /// A safetensors file could not be written.
    #[error("cannot write safetensors")]
    Safetensors(#[source] safetensors::SafeTensorError),
    /// Something could not be written as JSON.
    #[error("cannot write JSON")]
    Json(#[source] serde_json::Error),
    /// Reading data failed.
    #[error(transparent)]
    Data(#[from] lejepa_data::Error),
    /// A probe failed.
    #[error(transparent)]
    Probe(#[from] lejepa_probe::Error),
    /// The encoder failed.
    #[error(transparent)]
    Encoder(#[from] lejepa_embed::Error),
}
