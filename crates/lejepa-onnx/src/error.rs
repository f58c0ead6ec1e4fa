//! What can go wrong while a graph is written.

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
    /// The card could not be written as JSON.
    #[error("cannot write the card as JSON")]
    Json(#[from] serde_json::Error),
    /// Candle refused an operation.
    #[error("tensor operation failed")]
    Tensor(#[from] candle_core::Error),
}
