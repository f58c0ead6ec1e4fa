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
    /// There are too few samples for a statistic.
    #[error("{statistic} needs at least {least} samples, got: {got}")]
    Samples {
        /// The statistic's name.
        statistic: &'static str,
        /// The fewest samples for which it is defined.
        least: usize,
        /// How many there are.
        got: usize,
    },
    /// A statistic came out as infinite or not a number.
    #[error("{statistic} is not finite in slice {slice} of view {view}: {cause}")]
    NotFinite {
        /// The statistic's name.
        statistic: &'static str,
        /// The first view with such a slice.
        view: usize,
        /// Its first such slice.
        slice: usize,
        /// The sample that is not finite, or that the numbers are out of range.
        cause: String,
    },
    /// A statistic over all dimensions at once came out as infinite or not a number.
    #[error("{statistic} is not finite: {cause}")]
    NotFiniteJointly {
        /// The statistic's name.
        statistic: &'static str,
        /// The sample that is not finite, or that the numbers are out of range.
        cause: String,
    },
    /// There are too many samples for a statistic that compares all with all.
    #[error("{statistic} takes at most {most} samples, got: {got}")]
    TooManySamples {
        /// The statistic's name.
        statistic: &'static str,
        /// The most samples it takes.
        most: usize,
        /// How many there are.
        got: usize,
    },
    /// An embedding has a value that is not finite, or so large that its square would not be.
    #[error("row {row}, column {column} of the embeddings must be a number up to 1e30, got: {value}")]
    Value {
        /// The sample.
        row: usize,
        /// The dimension.
        column: usize,
        /// What is there.
        value: f64,
    },
    /// The covariance of embeddings could not be decomposed.
    #[error("the eigenvalues of the covariance did not converge")]
    Eigenvalues,
    /// Candle refused an operation.
    #[error("tensor operation failed")]
    Tensor(#[from] candle_core::Error),
}
