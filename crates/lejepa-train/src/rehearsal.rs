//! A run before it is run: what it is going to do, what it needs, and whether every parameter learns.
//!
//! Everything that a run does is done and measured: steps with everything that belongs to them, one pass of a look
//! and its probes, a checkpoint that goes nowhere; batches that wait for their step are there as in a run. Steps of a
//! few samples come first. A straight line through them says whether a whole step fits into memory and patience: if
//! so, whole steps are taken and measured, else what the line says is the estimate, which knows nothing of the gaps
//! that tensors of many sizes leave in memory.

use std::sync::Arc;
use std::time::Instant;

use lejepa_data::{Batch, BatchStream, Purpose, ViewSize, available_memory, generator};
use lejepa_loss::LejepaLoss;
use rand::Rng;

use crate::audit::audit;
use crate::pretrain::{Observer, check_precision, open_batches};
use crate::state::{Origin, State};
use crate::{DeviceChoice, EmbeddedImages, Objective, Result, TrainConfig, Watcher, memory};

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
    /// Samples of the steps that were measured: whole ones, or some smaller ones that the rest follows from.
    pub measured: Vec<usize>,
    /// Estimated time of a step, in seconds.
    pub step_seconds: f64,
    /// Estimated peak of memory in bytes, where the system tells.
    pub memory: Option<f64>,
}

/// The most samples of a step whose memory is not known before.
const SAMPLES: usize = 16;
/// Whole steps are taken if they need no more than this share of the memory that is left, for the line may be low.
const SHARE: f64 = 0.75;
/// The longest whole step that is taken, in seconds.
const PATIENCE: f64 = 60.;
/// Whole steps: the first one finds memory with fewer gaps.
const WHOLE_STEPS: usize = 2;

/// Rehearses a run; nothing is written. `give_back` is called before something is measured: memory that an allocator
/// keeps of what was before is to go back to the system.
pub fn rehearse(
    config: &TrainConfig,
    device: DeviceChoice,
    give_back: &dyn Fn(),
    observe: &mut Observer<'_>,
) -> Result<Rehearsal> {
    config.check()?;
    check_precision(config, device)?;
    let source = Arc::new(open_batches(config, None, observe)?);
    let watcher = Watcher::new(&config.watch, config, source.dataset())?;
    let loss = config.loss.build()?;
    let steps = config.total_steps(source.steps_per_epoch());
    // As many as a run has in memory, made by threads of their own, whose memory stays with them.
    let workers = config.data.worker_threads();
    let ahead = 0..steps.min(BatchStream::in_memory(workers) as u64);
    let mut batches =
        BatchStream::start(Arc::clone(&source), ahead, workers)?.collect::<lejepa_data::Result<Vec<_>>>()?;
    let mut stage = Stage {
        config,
        loss: &loss,
        state: State::new(config, &device.open()?)?,
        batch: batches.swap_remove(0),
        lr: config.schedule(steps).at(0),
        give_back,
    };
    let scale = Scale::of(config);
    // The first step of a process pays for memory and threads, and would flatten the line.
    stage.step(scale.small)?;
    let [small, large] = [stage.step(scale.small)?, stage.step(scale.large)?];
    let line = scale.estimate(&small, &large);
    let (measured, cost) = if fits(&line) {
        (vec![scale.whole.samples], stage.beginning(scale.whole, watcher.as_ref())?)
    } else {
        (vec![scale.small.samples, scale.large.samples], line.largest(stage.all_but_steps(watcher.as_ref())?))
    };
    drop(batches);
    let model = &stage.state.model;
    Ok(Rehearsal {
        images: source.dataset().len(),
        steps,
        global: source.views().global(),
        local: source.views().local(),
        parameters: model.parts().map(|(part, parameters)| (part, parameters.trainable_count())).collect(),
        tensors: model.trainable().count(),
        feature_dim: model.encoder().dim(),
        measured,
        step_seconds: cost.seconds,
        memory: cost.memory,
    })
}

/// A step of a few samples, so many of them at a time.
#[derive(Debug, Clone, Copy)]
struct Few {
    samples: usize,
    micro_batch: Option<usize>,
}

/// From two small steps to a whole one.
#[derive(Debug, Clone, Copy)]
struct Scale {
    small: Few,
    large: Few,
    whole: Few,
}

impl Scale {
    fn of(config: &TrainConfig) -> Self {
        let batch = config.train.batch;
        let micro_batch = config.train.micro_batch.filter(|&part| part < batch);
        let whole = Few { samples: batch, micro_batch };
        match micro_batch {
            None => {
                let large = batch.min(SAMPLES);
                let few = |samples| Few { samples, micro_batch: None };
                Self { small: few(large.div_ceil(2)), large: few(large), whole }
            }
            // Two parts each, so that gradients are summed as in the run.
            Some(part) => {
                let large = part.min(SAMPLES / 2);
                let few = |part: usize| Few { samples: (2 * part).min(batch), micro_batch: Some(part) };
                Self { small: few(large.div_ceil(2)), large: few(large), whole }
            }
        }
    }

    /// What a whole step would cost.
    fn estimate(&self, small: &Cost, large: &Cost) -> Cost {
        let memory = small.memory.zip(large.memory);
        Cost {
            seconds: self.seconds(small.seconds, large.seconds),
            memory: memory.map(|(small, large)| self.memory(small, large)),
        }
    }

    /// The memory of a whole step.
    fn memory(&self, small: f64, large: f64) -> f64 {
        let [few, more, all] = [self.small, self.large, self.whole].map(|few| few.at_once() as f64);
        let slope = if more > few { (large - small).max(0.) / (more - few) } else { 0. };
        large + slope * (all - more)
    }

    /// The time of a whole step.
    fn seconds(&self, small: f64, large: f64) -> f64 {
        let [few, more, all] = [self.small, self.large, self.whole].map(|few| few.samples as f64);
        // Without two sizes, time is in proportion.
        let slope = if more > few { (large - small).max(0.) / (more - few) } else { large / more };
        large + slope * (all - more)
    }
}

impl Few {
    /// Samples in the encoder at a time.
    fn at_once(&self) -> usize {
        self.micro_batch.unwrap_or(self.samples)
    }
}

/// The peak of memory since it was last forgotten.
fn peak() -> Option<f64> {
    memory::peak().map(|bytes| bytes as f64)
}

/// Whether a step can be taken beside everything else that the machine does.
fn fits(step: &Cost) -> bool {
    let more = step.memory.zip(memory::now()).map(|(peak, now)| peak - now as f64);
    let left = available_memory().map(|bytes| SHARE * bytes as f64);
    step.seconds <= PATIENCE && more.zip(left).is_some_and(|(more, left)| more <= left)
}

struct Cost {
    seconds: f64,
    memory: Option<f64>,
}

impl Cost {
    /// The time of a step, and its memory or that of something else that needs more.
    fn largest(self, other: Option<f64>) -> Self {
        Self { memory: self.memory.zip(other).map(|(step, other)| step.max(other)), ..self }
    }
}

/// Everything that a run has in memory.
struct Stage<'a> {
    config: &'a TrainConfig,
    loss: &'a LejepaLoss,
    state: State,
    /// A whole batch, as a run has it.
    batch: Batch,
    lr: f64,
    give_back: &'a dyn Fn(),
}

impl Stage<'_> {
    /// A step of a few samples, measured.
    fn step(&mut self, few: Few) -> Result<Cost> {
        (self.give_back)();
        memory::reset_peak();
        let seconds = self.take(few)?;
        Ok(Cost { seconds, memory: peak() })
    }

    /// The beginning of a run in its order, each thing in the memory that the one before has left: a look after a
    /// step needs more than by itself.
    fn beginning(&mut self, whole: Few, watcher: Option<&Watcher>) -> Result<Cost> {
        (self.give_back)();
        memory::reset_peak();
        watcher.map_or(Ok(()), |watcher| self.look(watcher))?;
        audit(&self.state.objective(self.config, self.loss), &self.batch)?;
        let mut seconds = 0.;
        for _ in 0..WHOLE_STEPS {
            seconds = self.take(whole)?;
        }
        self.checkpoint()?;
        watcher.map_or(Ok(()), |watcher| self.look(watcher))?;
        Ok(Cost { seconds, memory: peak() })
    }

    /// The memory of everything but whole steps, as it is: nothing grows in it.
    fn all_but_steps(&mut self, watcher: Option<&Watcher>) -> Result<Option<f64>> {
        // After the steps, whose memory would else be there before the first of them.
        audit(&self.state.objective(self.config, self.loss), &self.batch)?;
        (self.give_back)();
        memory::reset_peak();
        self.heads()?;
        watcher.map_or(Ok(()), |watcher| self.look(watcher))?;
        self.checkpoint()?;
        Ok(peak())
    }

    /// Takes a step of a few samples; its seconds.
    fn take(&mut self, few: Few) -> Result<f64> {
        let batch = self.batch.first_samples(few.samples);
        let clock = Instant::now();
        let objective =
            Objective { micro_batch: few.micro_batch, ..self.state.objective(self.config, self.loss) };
        let (_terms, gradients) = objective.gradients(&batch)?;
        self.state.optimizer.step(self.state.model.trainable(), &gradients, self.lr)?;
        self.state.taken += 1;
        if let Some(average) = &self.state.average {
            average.update(&self.state.model, self.state.taken, u64::MAX)?;
        }
        Ok(clock.elapsed().as_secs_f64())
    }

    /// What comes behind the encoder, for a whole batch: with small parts it may need more than the encoder, and
    /// small steps do not show it.
    fn heads(&self) -> Result<()> {
        let objective = self.state.objective(self.config, self.loss);
        match self.config.train.micro_batch {
            None => Ok(()),
            Some(_) => objective.rehearse_heads(&self.batch),
        }
    }

    /// A look with one pass of the encoder; the other images get any numbers.
    fn look(&self, watcher: &Watcher) -> Result<()> {
        let mut random = generator(0, Purpose::Watching, 0, 0);
        let preprocess = self.config.preprocess()?;
        let dims = [self.state.model.encoder().dim(), self.config.projector.dim];
        let mut passes = 0;
        watcher.look(0, &mut |pixels, images| {
            passes += 1;
            if passes == 1 {
                return self.state.embed(pixels, images, &preprocess);
            }
            let [features, embeddings] =
                dims.map(|dim| (0..images * dim).map(|_| random.random::<f32>() - 0.5).collect());
            Ok(EmbeddedImages { features, embeddings })
        })?;
        Ok(())
    }

    /// A checkpoint that goes nowhere.
    fn checkpoint(&self) -> Result<()> {
        let origin = Origin { run: "".as_ref(), config: self.config, data_fingerprint: "", changes: &[] };
        let written = self.state.snapshot(&origin).write(&mut std::io::sink());
        Ok(written.map_err(|source| lejepa_data::Error::Io {
            action: "write",
            path: "nowhere".into(),
            source,
        })?)
    }
}
