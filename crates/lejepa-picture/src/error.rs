//! What can go wrong with a picture.

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A mask that keeps nothing, or more than there is.
    #[error("the share of attention to keep must be above 0 and at most 1, got: {got}")]
    AttentionMass {
        /// The share.
        got: f64,
    },
    /// Attention is what a softmax gives.
    #[error("attention must be finite and not negative")]
    NotAttention,
    /// Nothing to make colours of.
    #[error("the features of patches are not finite")]
    PatchesNotFinite,
    /// The principal directions of the features cannot be computed.
    #[error("the principal directions of the features cannot be computed: their scale is out of range")]
    NoEigenvectors,
    /// An array of unexpected shape.
    #[error("features have an unexpected shape")]
    Shape(#[source] ndarray::ShapeError),
    /// Reading or writing an image failed.
    #[error(transparent)]
    Data(#[from] lejepa_data::Error),
}
