//! What can go wrong between a path and a batch.

use std::path::PathBuf;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing lies at the path.
    #[error("no such file or folder: {}", path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// The path holds nothing that is recognised as images.
    #[error("no images (jpeg, png, webp, bmp, tiff, gif) in: {}", path.display())]
    NoImages {
        /// The folder.
        path: PathBuf,
    },
    /// The data has no such part.
    #[error("no {split} split in: {}", path.display())]
    NoSplit {
        /// `training` or `test`.
        split: &'static str,
        /// The folder.
        path: PathBuf,
    },
    /// A file that a part of the data cannot do without is absent.
    #[error("the {split} split needs a file that is not there: {}", path.display())]
    NoSplitFile {
        /// The split's name.
        split: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("cannot {action}: {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// Somebody else writes the same.
    #[error("{holder} is at work in: {}", path.display())]
    Busy {
        /// A process, as far as it is known.
        holder: String,
        /// The file or folder.
        path: PathBuf,
    },
    /// A file that may be somebody's is where one is to be written.
    #[error("there already, and replaced only with --overwrite: {}", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Nothing is written through a link, or into something that is no file.
    #[error("a link, pipe or folder is where lejepa keeps a file of its own, remove it: {}", path.display())]
    NotOwn {
        /// What lies there.
        path: PathBuf,
    },
    /// A folder is not replaced by a file.
    #[error("a folder is where a file is to be written, choose another: {}", path.display())]
    NotAFile {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing can be written into a file as if it were a folder.
    #[error("a file is where a folder is to be made, choose another: {}", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// A file is damaged or of another kind.
    #[error("not a valid {format} file ({problem}): {}", path.display())]
    Invalid {
        /// What the file should be, such as `IDX`.
        format: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// An image does not fit into a file format.
    #[error("cannot encode image")]
    Encode(#[source] ::image::ImageError),
    /// The same for a PNG file with text in it.
    #[error("cannot encode image")]
    PngEncode(#[source] png::EncodingError),
    /// A file has a format that no reader knows.
    #[error("no images in a known format: {}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// A format was left out when the program was built.
    #[error("built without {what} (cargo feature `{feature}`), which is needed for: {}", path.display())]
    BuiltWithout {
        /// The format.
        what: &'static str,
        /// What to build with.
        feature: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A label is not one of the classes.
    #[error("label {label} of {name} is not one of {classes} classes")]
    Label {
        /// The sample.
        name: String,
        /// Its label.
        label: usize,
        /// Number of classes.
        classes: usize,
    },
    /// One image cannot be used.
    #[error("cannot use image: {name}")]
    Sample {
        /// The file, or file and place in it.
        name: String,
        /// Why.
        source: Box<Error>,
    },
    /// So many images cannot be used that something else must be wrong.
    #[error("{count} of {images} images cannot be used, more than {percent} %, such as {latest}")]
    TooManyBroken {
        /// Unusable images that were met.
        count: usize,
        /// All images.
        images: usize,
        /// The most that is tolerated.
        percent: f64,
        /// One of them, with the reason.
        latest: String,
    },
    /// An encoded image could not be decoded.
    #[error("cannot decode image")]
    Decode(#[source] ::image::ImageError),
    /// An image file ends before the image does.
    #[error("the image is cut off: its file ends after {bytes} bytes, before the end of the image")]
    Truncated {
        /// Length of the file.
        bytes: usize,
    },
    /// An image file goes on with something else before the image is there.
    #[error("the image is damaged: {problem}")]
    Damaged {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A decoder panicked.
    #[error("the decoder has a fault of its own: {message}")]
    DecoderPanic {
        /// What it said.
        message: String,
    },
    /// An image holds more than grey or colour in 8 bits.
    #[error("expected 8 bits of grey or colour, got {found}: {advice}")]
    Unhandled {
        /// What it holds.
        found: String,
        /// What to do.
        advice: &'static str,
    },
    /// An image has no pixels or too many.
    #[error("image must have 1 to {limit} pixels, got {height}x{width}")]
    ImageSize {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
        /// The most that is accepted.
        limit: usize,
    },
    /// A file is longer than one of an image.
    #[error("an image file must have at most {limit} bytes, got: {bytes}")]
    FileSize {
        /// Its length.
        bytes: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// A JPEG file goes over its pixels too often.
    #[error(
        "image must have at most {limit} scans, write it anew with `jpegtran -outfile OUT IN`, got: {scans}"
    )]
    Scans {
        /// Scans that were counted.
        scans: usize,
        /// The most that is accepted.
        limit: usize,
    },
    /// A buffer does not hold what its shape says.
    #[error("{what} must hold {expected} values, got: {got}")]
    BufferLength {
        /// Which buffer.
        what: &'static str,
        /// Values that its shape asks for.
        expected: usize,
        /// Values that it holds.
        got: usize,
    },
    /// A setting is outside its range.
    #[error("`{field}` must be {expected}, got: {got}")]
    Setting {
        /// The setting's name as in the configuration.
        field: &'static str,
        /// What would be accepted.
        expected: String,
        /// What was given.
        got: String,
    },
    /// An image could not be resized.
    #[error("cannot resize image: {0}")]
    Resize(String),
    /// Files were written to after their content was hashed.
    #[error("the images changed while they were read: run the command again")]
    Changed,
    /// The caller wanted the work to end.
    #[error("stopped before the end")]
    Stopped,
    /// The thread that prepares batches has ended without a result.
    #[error("the thread that prepares batches has stopped")]
    BatchThread,
}

impl Error {
    /// Whether it is of the moment, such as a disk or network that is away, and not of the data.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Sample { source, .. } => source.may_pass(),
            Self::Io { source, .. } => source.kind() != std::io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }

    /// Names the image that an error is about.
    pub fn sample(name: String, source: Self) -> Self {
        Self::Sample { name, source: Box::new(source) }
    }
}
