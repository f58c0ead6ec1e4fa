//! A run before it is run: what it is going to do, what it needs, and whether every parameter learns.
//!
//! Two steps on a few samples are measured; time and memory of a whole batch follow on a straight line.

use std::time::Instant;

use lejepa_data::{Batch, ViewSize};

use crate::pretrain::{Observer, check_precision, open_batches};
use crate::state::State;
use crate::{DeviceChoice, Objective, Result, TrainConfig, audit_gradients, memory};

/// What a run is going to do and to need.
#[derive(Debug, Clone, PartialEq)]
pub struct Rehearsal {
    /// Training images.
    pub images: usize,
    /// All steps.
    pub steps: u64,
    /// Global views per sample and their size.
    pub global: (usize, ViewSize),
    /// Local views per sample and their size.
    pub local: (usize, ViewSize),
    /// Numbers that are trained in every part: encoder, projector, predictor.
    pub parameters: Vec<(&'static str, usize)>,
    /// Tensors that are trained; each received a gradient.
    pub tensors: usize,
    /// Length of the encoder's feature vectors.
    pub feature_dim: usize,
    /// Samples of the two steps that were measured.
    pub measured: [usize; 2],
    /// Estimated time of a step, in seconds.
    pub step_seconds: f64,
    /// Estimated peak of memory in bytes, where the system tells.
    pub memory: Option<f64>,
}

/// The most samples that are measured.
const SAMPLES: usize = 16;

/// Rehearses a run; nothing is written.
pub fn rehearse(config: &TrainConfig, device: DeviceChoice, observe: &mut Observer<'_>) -> Result<Rehearsal> {
    config.check()?;
    check_precision(config, device)?;
    let source = open_batches(config, None, observe)?;
    let state = State::new(config, &device.open()?)?;
    let loss = config.loss.build()?;
    let batch = source.batch(0)?;
    let largest = config.train.batch.min(SAMPLES);
    let measured = [largest.div_ceil(2), largest];
    let measure = |samples| {
        let objective = Objective {
            // In parts, if the run is to work in parts.
            micro_batch: config.train.micro_batch.map(|_| usize::div_ceil(samples, 2)),
            ..state.objective(config, &loss)
        };
        measure(&objective, batch.clone().first_samples(samples))
    };
    // The first step of a process pays for memory and threads, and would flatten the line.
    measure(measured[0])?;
    let [small, large] = [measure(measured[0])?, measure(measured[1])?];
    let line = |small: f64, large: f64, samples: usize| {
        let more = (measured[1] - measured[0]).max(1) as f64;
        large + (large - small).max(0.) / more * (samples.saturating_sub(measured[1])) as f64
    };
    let at_once = config.train.micro_batch.unwrap_or(config.train.batch).min(config.train.batch);
    Ok(Rehearsal {
        images: source.dataset().len(),
        steps: config.total_steps(source.steps_per_epoch()),
        global: source.views().global(),
        local: source.views().local(),
        parameters: state
            .model
            .parts()
            .map(|(part, parameters)| (part, parameters.trainable_count()))
            .collect(),
        tensors: state.model.trainable().count(),
        feature_dim: state.model.encoder().dim(),
        measured,
        step_seconds: line(small.seconds, large.seconds, config.train.batch),
        memory: small.memory.zip(large.memory).map(|(small, large)| line(small, large, at_once)),
    })
}

struct Cost {
    seconds: f64,
    memory: Option<f64>,
}

/// The gradients of a batch, audited.
fn measure(objective: &Objective<'_>, batch: Batch) -> Result<Cost> {
    memory::reset_peak();
    let clock = Instant::now();
    let (_terms, gradients) = objective.gradients(&batch)?;
    audit_gradients(objective.model.trainable().map(|(name, _)| name), &gradients)?;
    Ok(Cost { seconds: clock.elapsed().as_secs_f64(), memory: memory::peak().map(|bytes| bytes as f64) })
}
