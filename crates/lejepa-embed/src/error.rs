//! What can go wrong between an encoder file and an embedding.

use std::path::PathBuf;
use std::sync::Arc;

use lejepa_data::{InputSize, Output};

use crate::Provider;
use crate::flaw::Flaw;
use crate::workers::Plan;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// ONNX Runtime's shared library was not found.
    #[error("ONNX Runtime was not found: set {} to its shared library", crate::runtime::LIBRARY_VARIABLE)]
    RuntimeNotFound,
    /// A file that should be ONNX Runtime could not be loaded.
    #[error("cannot load ONNX Runtime: {problem}")]
    RuntimeBroken {
        /// What the loader said; it names the file.
        problem: String,
    },
    /// Another library was asked for than the process has loaded.
    #[error("ONNX Runtime is loaded from {} already, cannot use: {}", loaded.display(), asked.display())]
    RuntimeLoaded {
        /// The library in use.
        loaded: PathBuf,
        /// The library that was asked for.
        asked: PathBuf,
    },
    /// The device that was asked for cannot be used; nothing runs elsewhere instead.
    #[error("cannot compute on: {provider}")]
    Provider {
        /// What was asked for.
        provider: Provider,
        /// Why not.
        source: ort::Error,
    },
    /// No file lies at the path.
    #[error("no such file: {}", path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// A folder, or something else that is no file.
    #[error("not a file: {}", path.display())]
    NotAFile {
        /// The path as given.
        path: PathBuf,
    },
    /// The system could not read a file.
    #[error("cannot read: {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// More than one ONNX file can hold.
    #[error("an ONNX file has at most {limit} bytes, got {length}: {name}")]
    TooLarge {
        /// The file.
        name: String,
        /// Its length.
        length: u64,
        /// The most that there can be.
        limit: u64,
    },
    /// The file ends too early or is something else.
    #[error("not a readable ONNX file (cut off, damaged, or of another kind): {name}")]
    Damaged {
        /// The file.
        name: String,
    },
    /// The content is not what the file itself says it is.
    #[error(
        "the file is damaged, or was rewritten by another program: its content does not match its checksum: {name}"
    )]
    Altered {
        /// The file.
        name: String,
    },
    /// Another content than when it was opened.
    #[error("the file was changed while it was open: {}", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Weights in files beside the ONNX file that cannot be used.
    #[error("cannot use {name}: {problem}")]
    ExternalData {
        /// The file.
        name: String,
        /// What is wrong; it names the file of weights.
        problem: String,
    },
    /// The file asks for more than one of a stranger may.
    #[error("refused unless the file is trusted, it has {problem}: {name}")]
    Limit {
        /// The file.
        name: String,
        /// What it has, and the limit: see [`FileLimits`](crate::FileLimits).
        problem: String,
    },
    /// Opening or trying the file took too long.
    #[error("gave up opening or trying the file after {} seconds: {name}", limit.as_secs_f64())]
    TimeLimit {
        /// The file.
        name: String,
        /// The time for it: see [`FileLimits`](crate::FileLimits).
        limit: std::time::Duration,
    },
    /// Opening or trying the file took too much memory.
    #[error("opening or trying the file takes more than {} MB of memory: {name}", limit / 1_000_000)]
    MemoryLimit {
        /// The file.
        name: String,
        /// The bytes for it: see [`FileLimits`](crate::FileLimits).
        limit: u64,
        /// What ran out of it.
        source: Box<Error>,
    },
    /// ONNX Runtime could not read the file.
    #[error("not a readable ONNX file: {name}")]
    Unreadable {
        /// The file.
        name: String,
        /// Why it failed.
        source: ort::Error,
    },
    /// An ONNX file, but not an encoder of this project.
    #[error("not a lejepa encoder ({problem}): {name}")]
    NotAnEncoder {
        /// The file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An ONNX file of another project does not fit its description.
    #[error("cannot use it as an encoder ({problem}): {name}")]
    Foreign {
        /// The file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file does not compute what was asked for.
    #[error("no output {}, only {}: {name}", output.name(), available.join(", "))]
    MissingOutput {
        /// What was asked for.
        output: Output,
        /// What there is.
        available: Vec<&'static str>,
        /// The file.
        name: String,
    },
    /// The file was not exported for this size.
    #[error("exported for images of {}, not for {}x{}: {name}", sizes(available), asked.height, asked.width)]
    Size {
        /// What was asked for.
        asked: InputSize,
        /// What there is.
        available: Vec<InputSize>,
        /// The file.
        name: String,
    },
    /// The file has no self-test, or it is for another size.
    #[error("no self-test for this size inside: {name}")]
    NoSelfTest {
        /// The file.
        name: String,
    },
    /// A setting of the builder cannot be right.
    #[error("`{field}` must be {expected}, got: {got}")]
    Setting {
        /// Which one.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it was.
        got: usize,
    },
    /// The input does not have the shape that the encoder takes.
    #[error("pixels must hold {expected} values for {images} images, got: {got}")]
    Pixels {
        /// Number of images.
        images: usize,
        /// Values that they need.
        expected: usize,
        /// Values that were given.
        got: usize,
    },
    /// What was computed of an image cannot be used.
    #[error("the {} of {image} {flaw}: {name}", output.name())]
    Flawed {
        /// What was computed.
        output: Output,
        /// The image.
        image: String,
        /// What is wrong.
        flaw: Flaw,
        /// The encoder's file.
        name: String,
    },
    /// An image could not be prepared.
    #[error(transparent)]
    Image(#[from] lejepa_data::Error),
    /// ONNX Runtime failed.
    #[error("ONNX Runtime failed")]
    Runtime(#[source] ort::Error),
    /// The system gave no thread.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
    /// The program failed while it computed; what went wrong is on standard error.
    #[error("the encoder failed unexpectedly, as told on standard error")]
    Panicked,
    /// The thread that should have answered is gone.
    #[error("the encoder has stopped")]
    Stopped,
    /// What several callers that shared a run are told.
    #[error(transparent)]
    Shared(Arc<Error>),
}

impl Error {
    pub(crate) fn runtime(source: ort::Error) -> Self {
        Self::Runtime(source)
    }

    /// Whether something that was asked for could not be had; ONNX Runtime only tells in words.
    pub(crate) fn is_lack_of_memory(&self) -> bool {
        let said = match self {
            Self::Runtime(error) | Self::Unreadable { source: error, .. } => error.to_string(),
            Self::Shared(error) => return error.is_lack_of_memory(),
            _ => return false,
        };
        ["bad_alloc", "bad allocation", "allocate memory", "out of memory"]
            .iter()
            .any(|words| said.contains(words))
    }

    pub(crate) fn missing_output(output: Output, plan: &Plan) -> Self {
        let mut available: Vec<Output> = plan.outputs.keys().copied().collect();
        available.sort_unstable();
        let available = available.into_iter().map(Output::name).collect();
        Self::MissingOutput { output, available, name: plan.model.name.clone() }
    }
}

fn sizes(sizes: &[InputSize]) -> String {
    let sizes: Vec<String> = sizes.iter().map(|size| format!("{}x{}", size.height, size.width)).collect();
    sizes.join(", ")
}
