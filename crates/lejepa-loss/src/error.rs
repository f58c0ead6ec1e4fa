//! What can go wrong while a loss is built or computed.

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is outside its range.
    #[error("`{field}` must be {expected}, got: {got}")]
    Setting {
        /// The setting's name as in the configuration.
        field: &'static str,
        /// What would be accepted.
        expected: &'static str,
        /// What was given.
        got: String,
    },
    /// The embeddings do not have the promised shape.
    #[error("embeddings must be {expected}, got shape: {got:?}")]
    Shape {
        /// What would be accepted.
        expected: String,
        /// The shape that was given.
        got: Vec<usize>,
    },
    /// Candle refused an operation.
    #[error("tensor operation failed")]
    Tensor(#[from] candle_core::Error),
}
