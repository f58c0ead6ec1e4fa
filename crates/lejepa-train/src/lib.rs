//! Runs the optimisation loop: pretraining with the LeJEPA loss, checkpoints, exact resume.
//!
//! [`TrainConfig`] is read from a recipe, [`pretrain`] runs it into a run folder:
//!
//! ```text
//! RUN/config.toml                          the whole configuration
//! RUN/changes.jsonl                        what was changed on the way, if anything
//! RUN/metrics.jsonl                        one line per step
//! RUN/watch.jsonl                          one line per look at the features
//! RUN/tensorboard/                         the same for TensorBoard
//! RUN/broken-images.jsonl                  images that could not be used, if any
//! RUN/diverged/                            the batch on which the run diverged, if it did
//! RUN/checkpoints/step-00000170.safetensors    weights, optimiser state, configuration
//! ```
//!
//! Batches, slices and the learning rate are pure functions of the step, so a run that was stopped
//! goes on as if it had not been.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use lejepa_train::{DeviceChoice, Event, TrainConfig, pretrain};
//!
//! let config = TrainConfig::load(Some("models/fashion-mnist-vit/train.toml".as_ref()), &[])?;
//! let summary = pretrain(&config, "runs/first".as_ref(), DeviceChoice::Cpu, &mut |event| {
//!     if let Event::Step(metrics) = event {
//!         eprintln!("step {}: loss {:.3}", metrics.step, metrics.loss);
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! # Ok::<(), lejepa_train::Error>(())
//! ```

mod adamw;
mod audit;
mod average;
mod broken_log;
mod change;
mod checkpoint;
mod config;
mod config_difference;
mod continuation;
mod defaults;
mod device;
mod divergence;
mod error;
mod gradients;
mod journal;
mod layers;
mod loop_config;
mod memory;
mod metrics;
mod model;
mod objective;
mod overrides;
mod preset;
mod pretrain;
mod put_aside;
mod recent_losses;
mod rehearsal;
mod run_config;
mod schedule;
mod session;
mod slices;
mod state;
mod statistics;
mod tensorboard;
mod watch;
mod weights_file;

pub use adamw::{AdamW, AdamWConfig};
pub use audit::{audit, audit_gradients};
pub use average::{Average, AveragingConfig};
pub use change::Change;
pub use checkpoint::{Checkpoint, CheckpointFile, CheckpointFolder, Snapshot};
pub use config::{PreprocessConfig, TrainConfig};
pub use device::DeviceChoice;
pub use error::{Error, Result, Retry};
pub use gradients::Gradients;
pub use layers::Layers;
pub use loop_config::{LoopConfig, Precision, PredictorConfig};
pub use metrics::{MetricsLog, StepMetrics};
pub use model::Model;
pub use objective::{Objective, Purpose};
pub use overrides::Override;
pub use pretrain::{Event, Observer, Plan, Summary, pretrain};
pub use rehearsal::{Rehearsal, rehearse};
pub use schedule::Schedule;
pub use session::Session;
pub use tensorboard::TensorBoard;
pub use watch::{EmbeddedImages, GaugeMetrics, WatchConfig, WatchLog, WatchMetrics, Watcher, read_watch};
pub use weights_file::{Import, encode_weights, import};
