//! What can go wrong while a model is built, loaded or run.

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting of the encoder or the projector is missing or outside its range.
    #[error("`{field}` must be {expected}, got: {got}")]
    Setting {
        /// The setting's name as in the configuration.
        field: &'static str,
        /// What would be accepted.
        expected: String,
        /// What was given.
        got: String,
    },
    /// Settings of a family of encoders are of a type that no table has.
    #[error("the settings of the encoder cannot be read: {problem}")]
    Settings {
        /// What is wrong with them.
        problem: String,
    },
    /// The weights lack a parameter of the model.
    #[error("the weights have no tensor named: {name}")]
    MissingTensor {
        /// The parameter's name.
        name: String,
    },
    /// The weights hold a tensor that the model does not have.
    #[error("the model has no parameter named: {name}")]
    UnknownTensor {
        /// The tensor's name.
        name: String,
    },
    /// A tensor does not fit its parameter.
    #[error("tensor `{name}` must have shape {expected:?}, got: {got:?}")]
    TensorShape {
        /// The parameter's name.
        name: String,
        /// The parameter's shape.
        expected: Vec<usize>,
        /// The tensor's shape.
        got: Vec<usize>,
    },
    /// A checked pass met a value that is not finite.
    #[error("not finite: {name}")]
    NotFinite {
        /// What holds it.
        name: String,
    },
    /// External weights are those of another encoder.
    #[error("the weights do not fit the encoder ({problems})")]
    ExternalWeights {
        /// Every tensor that is missing, too many or of another shape.
        problems: String,
    },
    /// External positions are a list of patches, whose rows and columns are not known.
    #[error(
        "the position embedding pos_embed of the shape {shape:?} {problem}: give the grid of the weights, such as \
         --grid {example}"
    )]
    PositionGrid {
        /// Of the patches alone.
        shape: Vec<usize>,
        /// What is not known, or does not fit.
        problem: String,
        /// One that would fit.
        example: crate::ImageSize,
    },
    /// Two layers claim the same parameter name.
    #[error("two parameters share the name: {name}")]
    DuplicateParameter {
        /// The name.
        name: String,
    },
    /// Candle refused an operation.
    #[error("tensor operation failed")]
    Tensor(#[from] candle_core::Error),
}
