//! The training loop.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use lejepa_data::{
    BatchConfig, BatchSource, BatchStream, BrokenImage, Cached, Dataset, TrainingData, write_atomically,
};

use crate::{
    AdamW, BrokenLog, Checkpoint, Error, MetricsLog, Model, Result, Snapshot, StepMetrics, TrainConfig,
    audit_gradients,
};

/// What a run tells its caller.
#[derive(Debug)]
pub enum Event<'a> {
    /// Images are decoded into the cache; so many of all.
    Caching {
        /// How many are done.
        done: usize,
        /// How many there are.
        images: usize,
    },
    /// The run is about to take its first step.
    Started(&'a Plan),
    /// An image cannot be used, for the first time in this run; another takes its place.
    Broken(&'a BrokenImage),
    /// A step was taken.
    Step(&'a StepMetrics),
}

/// What a run is going to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Training images.
    pub images: usize,
    /// Numbers that are trained, encoder and projector together.
    pub parameters: usize,
    /// The first step; not 0 when a run goes on.
    pub start: u64,
    /// All steps.
    pub total: u64,
    /// What a user should know about the data.
    pub notes: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Steps that were taken, earlier sessions included.
    pub step: u64,
    /// All steps of the run.
    pub total: u64,
}

impl Summary {
    /// Whether nothing is left to do.
    pub fn is_complete(&self) -> bool {
        self.step == self.total
    }
}

/// Trains into a run folder, or goes on where the run folder stopped. `observe` sees every step and
/// may end the run early, which saves a checkpoint.
pub fn pretrain(
    config: &TrainConfig,
    run: &Path,
    observe: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<Summary> {
    config.check()?;
    let device = Device::Cpu;
    let loss = config.loss.build()?;
    let data = open_data(config, observe)?;
    let fingerprint = data.dataset.fingerprint().to_string();
    let notes = data.dataset.notes().to_vec();
    let source = Arc::new(BatchSource::new(
        data,
        config.views()?,
        BatchConfig { batch: config.train.batch, seed: config.seed, broken_limit: config.data.broken_limit },
    )?);
    let steps_per_epoch = source.steps_per_epoch();
    let total = config.total_steps(steps_per_epoch);
    let schedule = config.schedule(total);

    let (start, model, mut optimizer) = match Checkpoint::latest(run)? {
        Some(checkpoint) => {
            check_same_run(&checkpoint, config, &fingerprint, run)?;
            (checkpoint.step, checkpoint.model(&device)?, checkpoint.optimizer()?)
        }
        None => (0, Model::new(config, &device)?, AdamW::new(&config.optimizer)),
    };
    let save = |step, optimizer: &AdamW| {
        Snapshot { step, config, data_fingerprint: &fingerprint, model: &model, optimizer }.save(run)
    };
    write_config(config, run)?;
    let mut log = MetricsLog::open(&run.join("metrics.jsonl"), start)?;
    let parameters = model.trainable().map(|(_name, variable)| variable.elem_count()).sum();
    let mut broken = BrokenLog::open(&run.join("broken-images.jsonl"))?;
    let mut keep_going =
        observe(Event::Started(&Plan { images: source.dataset().len(), parameters, start, total, notes }));

    let mut taken = start;
    let mut clock = Instant::now();
    for batch in BatchStream::start(source, start..total, config.data.worker_threads())? {
        if keep_going.is_break() {
            break;
        }
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                // Data that cannot be read must not cost the steps since the last checkpoint.
                if taken > start {
                    save(taken, &optimizer)?;
                }
                return Err(error.into());
            }
        };
        for image in &batch.broken {
            if broken.add(image)? {
                let _ = observe(Event::Broken(image));
            }
        }
        let step = batch.step;
        let lr = schedule.at(step);
        let diverged = |cause: String| Error::Diverged { step, cause };
        let terms = model.loss(&batch, &loss).map_err(|error| match error {
            Error::Loss(error @ lejepa_loss::Error::NotFinite { .. }) => diverged(error.to_string()),
            error => error,
        })?;
        let value = scalar(&terms.loss)?;
        if !value.is_finite() {
            return Err(diverged(format!("the loss is {value}")));
        }
        let gradients = terms.loss.backward()?;
        if step == 0 {
            audit_gradients(model.trainable(), &gradients)?;
        }
        optimizer.step(model.trainable(), &gradients, lr)?;
        taken = step + 1;

        let sigreg = scalar(&terms.sigreg)?;
        let metrics = StepMetrics {
            step,
            epoch: step as f64 / steps_per_epoch as f64,
            lr,
            loss: value,
            prediction: scalar(&terms.prediction)?,
            sigreg,
            sigreg_over_floor: loss.sigreg_floor(config.train.batch).map(|floor| sigreg / floor),
            images_per_second: config.train.batch as f64 / clock.elapsed().as_secs_f64(),
        };
        clock = Instant::now();
        log.append(&metrics)?;
        keep_going = observe(Event::Step(&metrics));
        if taken.is_multiple_of(config.train.checkpoint_every) && taken < total {
            save(taken, &optimizer)?;
        }
    }
    if taken > start {
        save(taken, &optimizer)?;
    }
    Ok(Summary { step: taken, total })
}

/// Opens the data, with a cache before it if the recipe asks for one.
fn open_data(
    config: &TrainConfig,
    observe: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<TrainingData> {
    let Some(folder) = &config.data.cache else { return Ok(config.data.open(&mut Ok)?) };
    let short_side = config.cache_short_side()?;
    let mut cached = |dataset: Box<dyn Dataset>| -> lejepa_data::Result<Box<dyn Dataset>> {
        let (mut done, images) = (0, dataset.len());
        let cached = Cached::open(dataset, folder, short_side, &mut |more| {
            done += more;
            observe(Event::Caching { done, images })
        })?;
        Ok(Box::new(cached))
    };
    Ok(config.data.open(&mut cached)?)
}

fn check_same_run(
    checkpoint: &Checkpoint,
    config: &TrainConfig,
    fingerprint: &str,
    run: &Path,
) -> Result<()> {
    // However many threads prepare them, batches are the same.
    let decisive = |config: &TrainConfig| {
        let mut config = config.clone();
        config.data.workers = None;
        config
    };
    let difference = if decisive(&checkpoint.config) != decisive(config) {
        "another configuration"
    } else if checkpoint.data_fingerprint != fingerprint {
        "other training data"
    } else {
        return Ok(());
    };
    Err(Error::OtherRun { path: run.into(), difference })
}

pub(crate) fn write_config(config: &TrainConfig, run: &Path) -> Result<()> {
    let text = toml::to_string_pretty(config)
        .map_err(|error| Error::Config { origin: "the run".into(), problem: error.to_string() })?;
    Ok(write_atomically(&run.join("config.toml"), |file| file.write_all(text.as_bytes()))?)
}

fn scalar(tensor: &Tensor) -> Result<f64> {
    Ok(tensor.to_dtype(DType::F64)?.to_scalar()?)
}
