//! What can go wrong while a graph is written.

use lejepa_data::Output;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The parameters are not those of the encoder.
    #[error("the encoder has no parameter named: {name}")]
    MissingParameter {
        /// The parameter's name.
        name: String,
    },
    /// The card does not describe the encoder.
    #[error("the card's {field} must be {expected}, got: {got}")]
    Card {
        /// Which entry.
        field: &'static str,
        /// What the encoder has.
        expected: String,
        /// What the card says.
        got: String,
    },
    /// The encoder cannot compute an output, or it was given without its projector.
    #[error("the encoder can give {}, not: {}", names(.available), .output.name())]
    Output {
        /// What was asked for.
        output: Output,
        /// What could be asked for.
        available: Vec<Output>,
    },
    /// A file without outputs is no encoder.
    #[error("no output was asked for")]
    NoOutput,
    /// Names of outputs are unique.
    #[error("an output was asked for twice: {}", .output.name())]
    RepeatedOutput {
        /// Which one.
        output: Output,
    },
    /// A weight cannot be stored in 16 bits.
    #[error("a value is outside the range of 16-bit floats in: {name}")]
    HalfRange {
        /// The parameter's name.
        name: String,
    },
    /// More weights than one ONNX file can hold.
    #[error("an ONNX file holds at most {most} bytes of weights, the others are beside it: {bytes}")]
    TooLarge {
        /// What there is.
        bytes: u64,
        /// What there may be.
        most: u64,
    },
    /// The file of weights could not be written.
    #[error("cannot write the weights")]
    Weights(#[source] std::io::Error),
    /// The card or the self-test could not be written as JSON.
    #[error("cannot write the metadata as JSON")]
    Json(#[from] serde_json::Error),
    /// The encoder refuses a size.
    #[error(transparent)]
    Model(#[from] lejepa_model::Error),
    /// Candle refused an operation.
    #[error("tensor operation failed")]
    Tensor(#[from] candle_core::Error),
}

fn names(outputs: &[Output]) -> String {
    outputs.iter().map(|output| output.name()).collect::<Vec<_>>().join(", ")
}
