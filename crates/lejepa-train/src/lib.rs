//! Runs the optimisation loop: pretraining with the LeJEPA loss, checkpoints, exact resume.
//!
//! [`TrainConfig`] is read from a recipe, [`pretrain`] runs it into a run folder:
//!
//! ```text
//! RUN/config.toml                          the whole configuration
//! RUN/metrics.jsonl                        one line per step
//! RUN/broken-images.jsonl                  images that could not be used, if any
//! RUN/checkpoints/step-00000170.safetensors    weights, optimiser state, configuration
//! ```
//!
//! Batches, slices and the learning rate are pure functions of the step, so a run that was stopped
//! goes on as if it had not been.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use lejepa_train::{Event, TrainConfig, pretrain};
//!
//! let config = TrainConfig::load(Some("models/fashion-mnist-vit/train.toml".as_ref()), &[])?;
//! let summary = pretrain(&config, "runs/first".as_ref(), &mut |event| {
//!     if let Event::Step(metrics) = event {
//!         eprintln!("step {}: loss {:.3}", metrics.step, metrics.loss);
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! # Ok::<(), lejepa_train::Error>(())
//! ```

mod adamw;
mod audit;
mod broken_log;
mod checkpoint;
mod config;
mod error;
mod metrics;
mod model;
mod preset;
mod pretrain;
mod schedule;
mod weights_file;

pub use adamw::{AdamW, AdamWConfig};
pub use audit::audit_gradients;
pub(crate) use broken_log::BrokenLog;
pub use checkpoint::{Checkpoint, Snapshot};
pub use config::{LoopConfig, Override, PreprocessConfig, TrainConfig};
pub use error::{Error, Result};
pub use metrics::{MetricsLog, StepMetrics};
pub use model::Model;
pub use pretrain::{Event, Plan, Summary, pretrain};
pub use schedule::Schedule;
pub use weights_file::{Import, encode_weights, import};
