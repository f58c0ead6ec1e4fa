//! What can go wrong between an encoder file and an embedding.

use std::path::PathBuf;

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
    /// No file lies at the path.
    #[error("no such file: {}", path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
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
    /// An image could not be prepared.
    #[error(transparent)]
    Image(#[from] lejepa_data::Error),
    /// ONNX Runtime failed.
    #[error("ONNX Runtime failed")]
    Runtime(#[from] ort::Error),
}
