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
    /// Smoothing that would forget everything new, or more.
    #[error("the smoothing must be at least 0 and below 1, got: {got}")]
    Smoothing {
        /// The weight of what was before.
        got: f32,
    },
    /// The encoder has no such head.
    #[error("the encoder has heads 1 to {heads}, got: {got}")]
    Head {
        /// How many there are.
        heads: usize,
        /// What was asked for.
        got: usize,
    },
    /// A film needs a program that is not there.
    #[error("ffmpeg is needed to read it and was not found: {}", path.display())]
    NoFfmpeg {
        /// The film.
        path: PathBuf,
    },
    /// A program could not be started.
    #[error("cannot run: {}", program.display())]
    FfmpegStart {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: std::io::Error,
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
    /// A film could not be read or written.
    #[error("ffmpeg failed ({problem}): {}", path.display())]
    Ffmpeg {
        /// What it said.
        problem: String,
        /// The film.
        path: PathBuf,
    },
    /// Neither a file nor a folder.
    #[error("neither a file nor a folder: {}", path.display())]
    NotAVideo {
        /// The path as given.
        path: PathBuf,
    },
    /// Masks are named after frames, so names must differ.
    #[error("two frames are called {name} in: {}", path.display())]
    TwoFrames {
        /// Their name.
        name: String,
        /// The folder.
        path: PathBuf,
    },
    /// A frame that is too large to be read.
    #[error("a frame must have at most {limit} bytes, got {length}: {}", path.display())]
    LargeFile {
        /// The most that is accepted.
        limit: u64,
        /// Its length.
        length: u64,
        /// The file.
        path: PathBuf,
    },
    /// Not a single frame could be read.
    #[error("no frame can be read of: {}", path.display())]
    NoFrames {
        /// The clip.
        path: PathBuf,
    },
    /// A file is no mask, or not the one of its frame.
    #[error("cannot use mask ({problem}): {}", path.display())]
    Mask {
        /// What is wrong with it.
        problem: String,
        /// The file.
        path: PathBuf,
    },
    /// Masks without objects tell nothing.
    #[error("no PNG file with an object in: {}", path.display())]
    NoObjects {
        /// The folder.
        path: PathBuf,
    },
    /// No mask has the name of a frame.
    #[error("no mask has the name of a frame in: {}", path.display())]
    MasksOfOthers {
        /// The folder of masks.
        path: PathBuf,
    },
    /// Clips were asked for that are not there.
    #[error("no such clips ({names}) in: {}", path.display())]
    MissingClips {
        /// Their names.
        names: String,
        /// Where they were looked for.
        path: PathBuf,
    },
    /// A list names nothing.
    #[error("no names of clips in: {}", path.display())]
    EmptyClipList {
        /// The list.
        path: PathBuf,
    },
    /// There is nothing to choose from.
    #[error("one clip, not a set of clips: {}", path.display())]
    NotASet {
        /// The clip.
        path: PathBuf,
    },
    /// There is nothing to follow.
    #[error("the first frame of {clip} has no mask with an object")]
    NoFirstMask {
        /// The clip.
        clip: String,
    },
    /// Frames or true masks would be lost.
    #[error("would write masks over what it reads: {}", path.display())]
    WritesOver {
        /// The folder.
        path: PathBuf,
    },
    /// Neither way to masks is open.
    #[error(
        "nothing to segment: no encoder has attention over patches, and no clip true masks whose first one could be \
         followed"
    )]
    NothingToSegment,
    /// There is nothing to segment with.
    #[error("no encoder to segment with")]
    NoCandidate,
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
    /// The encoder failed.
    #[error(transparent)]
    Encoder(#[from] lejepa_embed::Error),
}

impl Error {
    /// Whether it is of one clip alone, and the others of a set are segmented all the same.
    pub(crate) fn leaves_out_a_clip(&self) -> bool {
        matches!(self, Self::NoFirstMask { .. })
    }
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
