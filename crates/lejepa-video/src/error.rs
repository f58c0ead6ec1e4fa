//! What can go wrong with a clip.

use std::path::PathBuf;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller wanted the work to end.
    #[error("stopped")]
    Stopped,
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
    /// There is nothing to segment with.
    #[error("no encoder to segment with")]
    NoCandidate,
    /// Something could not be written as JSON.
    #[error("cannot write JSON")]
    Json(#[source] serde_json::Error),
    /// Reading or writing data failed.
    #[error(transparent)]
    Data(#[from] lejepa_data::Error),
    /// A picture could not be drawn.
    #[error(transparent)]
    Picture(lejepa_picture::Error),
    /// The encoder failed.
    #[error(transparent)]
    Encoder(#[from] lejepa_embed::Error),
}

impl Error {
    /// Whether it is of one clip alone, and the others of a set are segmented all the same.
    pub fn leaves_out_a_clip(&self) -> bool {
        matches!(self, Self::NoFirstMask { .. })
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
