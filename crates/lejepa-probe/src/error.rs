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
        /// Labels or rows of values.
        labels: usize,
    },
    /// A feature is NaN or infinite.
    #[error("the feature of image {index} is not finite: the encoder or its input is broken")]
    NotFinite {
        /// The image.
        index: usize,
    },
    /// A value to be predicted is NaN or infinite.
    #[error("the target of image {index} is not finite")]
    TargetNotFinite {
        /// The image.
        index: usize,
    },
    /// Features, or values to be predicted, without a single column.
    #[error("features and targets need at least one column")]
    NoColumns,
    /// A label outside the classes.
    #[error("the label of image {index} is not below the number of classes, {classes}: {label}")]
    Label {
        /// The image.
        index: usize,
        /// How many classes there are.
        classes: usize,
        /// What was given.
        label: usize,
    },
    /// An image that was asked for is not among the features.
    #[error("there are {images} images, and none with the number: {image}")]
    NoImage {
        /// The number.
        image: usize,
        /// Images there are.
        images: usize,
    },
    /// The caller ended the work.
    #[error("the probe was stopped")]
    Stopped,
    /// Nothing to learn from.
    #[error("a probe needs at least one training sample")]
    NoSamples,
    /// Features that do not compare.
    #[error("the probe learnt from features of {expected} dimensions and is asked about: {got}")]
    Dimensions {
        /// Of the training features.
        expected: usize,
        /// Of the others.
        got: usize,
    },
    /// A probe of classes was given values.
    #[error("this probe predicts classes, not values: {probe}")]
    ClassesOnly {
        /// The probe.
        probe: &'static str,
    },
    /// A setting that must be above zero.
    #[error("`{setting}` must be {wanted}, got: {got}")]
    NotPositive {
        /// Its name.
        setting: &'static str,
        /// The condition that it must meet.
        wanted: &'static str,
        /// Its value or values.
        got: String,
    },
    /// A share that leaves nothing on one side.
    #[error("`holdout` must be between 0 and 1, got: {got}")]
    Holdout {
        /// Its value.
        got: f64,
    },
    /// An empty list of candidates.
    #[error("`{setting}` needs at least one value")]
    NothingToChoose {
        /// Its name.
        setting: &'static str,
    },
    /// The normal equations cannot be solved.
    #[error("the ridge probe cannot be solved with lambda {lambda}: use a larger one")]
    Singular {
        /// The penalty.
        lambda: f64,
    },
    /// The principal directions of the features cannot be computed.
    #[error("the principal directions of the features cannot be computed: their scale is out of range")]
    NoEigenvectors,
    /// Numbers that have gaps between them, or are not in the order of the rows.
    #[error("a matrix must lie in memory row by row, without gaps")]
    Layout,
    /// A dataset whose samples count differently.
    #[error("probes count every sample once, and the dataset has weights")]
    Weights,
    /// A dataset or parameters that linfa refuses.
    #[error(transparent)]
    Linfa(#[from] linfa::Error),
    /// A classifier of linfa cannot be fitted.
    #[error("{probe} cannot be fitted")]
    Classifier {
        /// Its name.
        probe: &'static str,
        /// The reason that it gives.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Training left the numbers behind.
    #[error("the linear probe diverged: use a smaller learning rate than {rate}")]
    Diverged {
        /// The learning rate.
        rate: f64,
    },
}
