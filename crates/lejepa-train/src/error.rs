//! What can go wrong in a training run.

use std::path::{Path, PathBuf};

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recipe is not valid TOML, or has unknown or ill-typed keys.
    #[error("invalid configuration in {origin}: {problem}")]
    Config {
        /// The file, or `--set` and flags.
        origin: String,
        /// What is wrong and where.
        problem: String,
    },
    /// A setting is missing or outside its range.
    #[error("`{field}` must be {expected}, got: {got}")]
    Setting {
        /// The setting's name as in the configuration.
        field: &'static str,
        /// What would be accepted.
        expected: String,
        /// What was given.
        got: String,
    },
    /// Parameters that would not learn.
    #[error("gradient audit failed: {problem} for: {}", names.join(", "))]
    Audit {
        /// What is wrong with the gradients.
        problem: &'static str,
        /// The parameters.
        names: Vec<String>,
    },
    /// The loss or a gradient is not a number any more.
    #[error("the run diverged at step {step}: lower `optimizer.lr`; not finite: {culprit}{}", place_of(batch.as_deref()))]
    Diverged {
        /// The step.
        step: u64,
        /// The first tensor that is not finite.
        culprit: String,
        /// The views of the step; none if the step itself was finite, and what it made of a parameter was not.
        batch: Option<PathBuf>,
        /// What is worth a try.
        retry: Retry,
    },
    /// The device cannot be used.
    #[error("cannot use {device}: {problem}")]
    Device {
        /// The device.
        device: crate::DeviceChoice,
        /// Why not.
        problem: String,
    },
    /// The encoder of another run does not fit this one.
    #[error("cannot start from the encoder of {} ({problem}): `encoder` must be as in its config.toml", path.display())]
    Init {
        /// The other run's folder.
        path: PathBuf,
        /// What does not fit.
        problem: String,
    },
    /// The run folder holds something else.
    #[error("{} holds a run with {difference}: choose another --out or remove it", path.display())]
    OtherRun {
        /// The run folder.
        path: PathBuf,
        /// What differs.
        difference: String,
    },
    /// A run's `config.toml` decides otherwise than its newest checkpoint.
    #[error("the newest checkpoint and the file disagree ({difference}): {}", path.display())]
    Edited {
        /// The file.
        path: PathBuf,
        /// What differs: in the checkpoint, and in the file.
        difference: String,
    },
    /// The run cannot go on with this difference, whoever asks for it.
    #[error("the model of a run stays as it is ({difference}): {}", path.display())]
    Fixed {
        /// The run folder.
        path: PathBuf,
        /// What differs.
        difference: String,
    },
    /// A run folder that is to be made is there already.
    #[error("{} holds a run with checkpoints: choose another --out or remove it", path.display())]
    Begun {
        /// The run folder.
        path: PathBuf,
    },
    /// A file that no run has written would be replaced.
    #[error("no run has written that file, choose another --out: {}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The folder is not a run, or has not saved anything yet.
    #[error("no checkpoint in: {}", path.display())]
    NoCheckpoint {
        /// The run folder.
        path: PathBuf,
    },
    /// A checkpoint is damaged.
    #[error("damaged checkpoint ({problem}): {}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A run has damaged checkpoints only.
    #[error("damaged checkpoint ({problem}), and no other to go on from: {}", path.display())]
    OnlyDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A checkpoint is not damaged, but not what this version of the program writes.
    #[error("checkpoint of another version of this program ({problem}): {}", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// What is not understood.
        problem: String,
    },
    /// A model with numbers that are not finite was looked at.
    #[error("the {what} of watched image {image} are not finite after step: {step}")]
    LookNotFinite {
        /// Features or embeddings.
        what: &'static str,
        /// Steps that were taken.
        step: u64,
        /// The first such image.
        image: usize,
    },
    /// A model has not made one row per image.
    #[error("the {what} of {images} watched images must have rows of equal length, got numbers: {length}")]
    Embedded {
        /// Features or embeddings.
        what: &'static str,
        /// How many images there are.
        images: usize,
        /// How many numbers were made of them.
        length: usize,
    },
    /// A probe failed.
    #[error(transparent)]
    Probe(#[from] lejepa_probe::Error),
    /// Reading data or writing a file failed.
    #[error(transparent)]
    Data(#[from] lejepa_data::Error),
    /// The loss refused its settings or its input.
    #[error("[loss] {0}")]
    Loss(#[source] lejepa_loss::Error),
    /// The model refused its settings, weights or input.
    #[error(transparent)]
    Model(#[from] lejepa_model::Error),
    /// Candle refused an operation.
    #[error("tensor operation failed")]
    Tensor(#[from] candle_core::Error),
}

/// How a run that diverged may go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// The run folder.
    pub run: PathBuf,
    /// A checkpoint from before the trouble; 0 for the beginning.
    pub from_step: u64,
    /// A lower learning rate.
    pub lr: f64,
}

fn place_of(batch: Option<&Path>) -> String {
    batch.map(|batch| format!(" (the batch is in {})", batch.display())).unwrap_or_default()
}

impl From<lejepa_loss::Error> for Error {
    fn from(error: lejepa_loss::Error) -> Self {
        Self::Loss(error)
    }
}
