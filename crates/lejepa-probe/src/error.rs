//! What can go wrong with a probe.

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Features and labels do not belong together.
    #[error("{features} features but {labels} labels")]
    Mismatch {
        /// Rows of features.
        features: usize,
        /// Labels.
        labels: usize,
    },
    /// A feature is NaN or infinite.
    #[error("the feature of image {index} is not finite: the encoder or its input is broken")]
    NotFinite {
        /// The image.
        index: usize,
    },
    /// The normal equations cannot be solved.
    #[error("the ridge probe cannot be solved with lambda {lambda}: use a larger one")]
    Singular {
        /// The penalty.
        lambda: f64,
    },
}
