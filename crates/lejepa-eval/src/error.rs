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
    /// Nothing that is asked about can be found.
    #[error(
        "no class of the test images has a training image: name another split with --test-split, or put the \
         test images into folders of the training classes in {}",
        path.display()
    )]
    NoSharedClass {
        /// The data.
        path: PathBuf,
    },
    /// Splits that are to be joined number their classes differently.
    #[error("training and validation split have other classes: leave use_validation out for {}", path.display())]
    OtherClasses {
        /// The data.
        path: PathBuf,
    },
    /// A folder with something else in it is not written to.
    #[error("the folder holds {found}: use another --out, or --overwrite to replace that: {}", folder.display())]
    OtherReport {
        /// What is in there.
        found: String,
        /// The folder.
        folder: PathBuf,
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
    #[error("holds parts of another extraction (other: {differences}): {}", folder.display())]
    OtherExtraction {
        /// The folder.
        folder: PathBuf,
        /// In what it differs.
        differences: String,
    },
    /// A folder holds parts of which nobody knows what computed them.
    #[error("holds parts without their key.json: {}", folder.display())]
    PartsWithoutKey {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process writes into the same folder.
    #[error("{holder} is at work in: {}", folder.display())]
    Busy {
        /// A process, as far as it is known.
        holder: String,
        /// The folder.
        folder: PathBuf,
    },
    /// Not all images are in the parts.
    #[error("{images} images are missing, the first is number {first}: {}", folder.display())]
    MissingParts {
        /// How many.
        images: usize,
        /// The first one's number in the list, from zero.
        first: usize,
        /// The folder of the parts.
        folder: PathBuf,
    },
    /// A number that 16 bits cannot hold.
    #[error("a value is too large for f16, write f32: {value}")]
    TooLargeForHalf {
        /// The number.
        value: f32,
    },
    /// The system could not use a file or folder.
    #[error("cannot use: {}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A part was changed or removed while it was needed.
    #[error("a part of the features is gone or damaged: {}", path.display())]
    LostPart {
        /// The part.
        path: PathBuf,
    },
    /// Candidates of one table would be scored on different images.
    #[error(
        "{candidate} and the first candidate have finite features of different {split} images ({got} and {expected}), so \
         that their numbers do not compare"
    )]
    OtherImages {
        /// A row of the table.
        candidate: String,
        /// `training` or `test`.
        split: &'static str,
        /// Images of this candidate.
        got: usize,
        /// Images of the first one.
        expected: usize,
    },
    /// Neither way to masks is open.
    #[error(
        "nothing to segment: no encoder has attention over patches, and no clip true masks whose first one could be \
         followed"
    )]
    NothingToSegment,
    /// A file of features could not be written.
    #[error("cannot write: {}", path.display())]
    FeatureFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<Error>,
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
    /// Features would not fit into memory.
    #[error(
        "cannot hold the features of {candidate}, that {lack} (less with a smaller `train_limit` in the suite)"
    )]
    Memory {
        /// The candidate.
        candidate: String,
        /// What they need, and what there is.
        lack: String,
    },
    /// A probe failed.
    #[error(transparent)]
    Probe(lejepa_probe::Error),
    /// A picture could not be drawn.
    #[error(transparent)]
    Picture(lejepa_picture::Error),
    /// A clip could not be segmented.
    #[error(transparent)]
    Video(lejepa_video::Error),
    /// The encoder failed.
    #[error(transparent)]
    Encoder(#[from] lejepa_embed::Error),
}

impl From<lejepa_probe::Error> for Error {
    fn from(error: lejepa_probe::Error) -> Self {
        match error {
            lejepa_probe::Error::Stopped => Self::Stopped,
            error => Self::Probe(error),
        }
    }
}

impl From<lejepa_picture::Error> for Error {
    fn from(error: lejepa_picture::Error) -> Self {
        match error {
            lejepa_picture::Error::Data(error) => Self::Data(error),
            error => Self::Picture(error),
        }
    }
}

impl From<lejepa_video::Error> for Error {
    fn from(error: lejepa_video::Error) -> Self {
        match error {
            lejepa_video::Error::Stopped => Self::Stopped,
            lejepa_video::Error::Data(error) => Self::Data(error),
            lejepa_video::Error::Encoder(error) => Self::Encoder(error),
            error => Self::Video(error),
        }
    }
}
