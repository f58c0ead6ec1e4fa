//! The training loop.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Tensor};
use lejepa_data::{
    Batch, BatchConfig, BatchSource, BatchStream, BrokenImage, CachePlace, Cached, Dataset, FileFacts,
    Fingerprinter, Hashing, ImageHash, Lock, SeenImages, TrainingData, regular_file,
};

use rayon::prelude::*;

use crate::audit::{NOT_FINITE, audit};
use crate::change::write_changes;
use crate::continuation::Continuation;
use crate::divergence::{Divergence, diverged, find_culprit, save_batch};
use crate::journal::Journal;
use crate::recent_losses::RecentLosses;
use crate::state::{Origin, State};
use crate::statistics::Statistics;
use crate::{
    Checkpoint, CheckpointFolder, DeviceChoice, Error, Gradients, Objective, Precision, Result, Session,
    StepMetrics, TrainConfig, WatchMetrics, Watcher, defaults, run_config,
};

/// The folder of a run, or of a cache, in which hashes of the data's files are remembered.
const HASHES: &str = "hashes";

/// What a run tells its caller.
#[derive(Debug)]
pub enum Event<'a> {
    /// Files are read, to see whether their content is known.
    Hashing(Hashing),
    /// Images are decoded into the cache; so many of all.
    Caching {
        /// How many are done.
        done: usize,
        /// How many there are.
        images: usize,
    },
    /// Images are noted down as those that the encoder was trained on; so many of all.
    Remembering {
        /// How many are done.
        done: usize,
        /// How many there are.
        images: usize,
    },
    /// A checkpoint could not be read and was put aside; the run goes on from the one before.
    Damaged {
        /// Where it is now.
        path: &'a Path,
        /// What is wrong with it.
        error: &'a Error,
    },
    /// The run is about to take its first step.
    Started(&'a Plan),
    /// An image cannot be used, for the first time in this run; another takes its place.
    Broken(&'a BrokenImage),
    /// A step was taken.
    Step(&'a StepMetrics),
    /// The run was looked at.
    Look(&'a WatchMetrics),
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
    /// What a user should know about the data and the looks.
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

/// What a run tells its caller through, and how the caller ends it early.
pub type Observer<'a> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 'a;

/// Trains into a run folder, or goes on where the run folder stopped. `observe` sees every step and
/// may end the run early, which saves a checkpoint.
pub fn pretrain(
    config: &TrainConfig,
    run: &Path,
    device: DeviceChoice,
    observe: &mut Observer<'_>,
) -> Result<Summary> {
    Session::new(config, run, device).pretrain(observe)
}

impl Session<'_> {
    /// Trains, as [`pretrain`] does.
    pub fn pretrain(&self, observe: &mut Observer<'_>) -> Result<Summary> {
        self.config.check()?;
        check_precision(self.config, self.device)?;
        let _lock = Lock::of_folder(self.run)?;
        let checkpoint = self.checkpoint(&mut |path, error| {
            let _ = observe(Event::Damaged { path, error });
        })?;
        match &checkpoint {
            Some(found) => {
                let (config, notes) = defaults::keep(self.config, &found.config);
                // From an earlier checkpoint on, the file is that of the way that is left.
                if self.from_step.is_none() {
                    run_config::check(self.run, found, self.changes)?;
                }
                run_loop(&Session { config: &config, ..*self }, checkpoint, notes, observe)
            }
            None => {
                refuse_foreign(self.run)?;
                run_loop(self, None, Vec::new(), observe)
            }
        }
    }
}

/// The loop, from where the run stopped. `notes` are the first of the plan.
fn run_loop(
    session: &Session<'_>,
    checkpoint: Option<Checkpoint>,
    notes: Vec<String>,
    observe: &mut Observer<'_>,
) -> Result<Summary> {
    let Session { config, run, .. } = *session;
    let device = session.device.open()?;
    let loss = config.loss.build()?;
    // A run that goes on has them in its checkpoint.
    let mut hashes = session.may_bring_images(checkpoint.as_ref()).then(Vec::new);
    let source = Arc::new(open_batches(config, hashes.as_mut(), observe)?);
    let mut hashing = |hashing| observe(Event::Hashing(hashing));
    let mut fingerprinter = Fingerprinter::default().remembering(&run.join(HASHES)).observed(&mut hashing);
    let data_fingerprint = source.dataset().fingerprint(&mut fingerprinter)?;
    let steps_per_epoch = source.steps_per_epoch();
    let total = config.total_steps(steps_per_epoch);
    let schedule = config.schedule(total);

    let mut notes = notes;
    let mut history = Vec::new();
    let mut changes = Vec::new();
    let mut state = match checkpoint {
        None => State::new(config, &device)?,
        Some(checkpoint) => {
            let continuation =
                Continuation { run, config, data_fingerprint: &data_fingerprint, changes: session.changes };
            changes = continuation.changes_since(&checkpoint)?;
            notes.extend(session.notes(&checkpoint, &changes, &schedule, steps_per_epoch)?);
            history = [&checkpoint.changes[..], &changes].concat();
            State::resume(checkpoint, config, &device)?
        }
    };
    if let (Some(before), Some(hashes)) = (&state.seen, hashes) {
        state.seen = Some(before.union(&SeenImages::of(hashes)));
    }
    let origin = Origin { run, config, data_fingerprint: &data_fingerprint, changes: &history };
    if session.from_step.is_some() {
        CheckpointFolder::of(run).put_aside_after(state.taken)?;
    }
    let start = state.taken;
    let mut journal = Journal::open(run, start, RecentLosses::count(config))?;
    state.recall_losses(&journal.take_last_losses());
    if !changes.is_empty() {
        // From now on the run is the changed one, whatever happens to this session.
        state.write(&origin)?;
    }
    run_config::write(config, run)?;
    write_changes(&history, run)?;
    let watcher = Watcher::new(&config.watch, config, source.dataset())?;
    notes.extend_from_slice(source.dataset().notes());
    if start < total {
        notes.extend(watch_notes(config, watcher.as_ref(), journal.last_look()));
    }
    let mut keep_going = observe(Event::Started(&Plan {
        images: source.dataset().len(),
        parameters: state.model.trainable().map(|(_name, variable)| variable.elem_count()).sum(),
        start,
        total,
        notes,
    }));
    let look_at = |state: &State, journal: &mut Journal, observe: &mut Observer<'_>| -> Result<()> {
        if let Some(watcher) = &watcher {
            let look = state.look(watcher, config)?;
            journal.look(&look)?;
            let _ = observe(Event::Look(&look));
        }
        Ok(())
    };
    // A look comes after the checkpoint of its step: a session that ended between the two has left it to this one.
    let is_look_due = |taken: u64| taken == total || taken == 0 || config.watch.is_due(taken);
    let is_left = journal.last_look().is_none_or(|look| look.step < start);
    if is_look_due(start) && is_left && keep_going.is_continue() {
        look_at(&state, &mut journal, observe)?;
    }

    let views = config.views.global.count + config.views.local.count;
    let floor = loss.sigreg_floor(views, config.train.batch);
    let (mut clock, mut saved) = (Instant::now(), Instant::now());
    for batch in BatchStream::start(source, start..total, config.data.worker_threads())? {
        if keep_going.is_break() {
            break;
        }
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                // Data that cannot be read must not cost the steps since the last checkpoint.
                state.save(&origin)?;
                return Err(error.into());
            }
        };
        for image in &batch.broken {
            if journal.broken(image)? {
                let _ = observe(Event::Broken(image));
            }
        }

        let step = batch.step;
        let lr = schedule.at(step);
        let objective = state.objective(config, &loss);
        if step == 0 {
            audit_before_the_first_step(&objective, &batch)?;
        }
        let (terms, mut gradients) = match take_gradients(&objective, &batch, config.optimizer.clip)? {
            Ok(found) => found,
            Err(culprit) => {
                let batch = Some(save_batch(run, &batch, &culprit)?);
                match state.save(&origin) {
                    // The weights are what is not finite: the checkpoint before is the last good one.
                    Ok(()) | Err(Error::Diverged { .. }) => {}
                    Err(error) => return Err(error),
                }
                return Err(diverged(&origin, Divergence { step, culprit, batch }));
            }
        };
        if let Some(largest) = config.optimizer.clip {
            gradients.clip(terms.gradient_norm, largest)?;
        }
        state.optimizer.step(state.model.trainable(), &gradients, lr)?;
        state.taken = step + 1;
        if let Some(average) = &state.average {
            average.update(&state.model, state.taken, total)?;
        }

        let metrics = StepMetrics {
            step,
            total,
            epoch: step as f64 / steps_per_epoch as f64,
            lr,
            loss: terms.loss,
            prediction: terms.prediction,
            sigreg: terms.sigreg,
            sigreg_over_floor: floor.map(|floor| terms.sigreg / floor),
            gradient_norm: terms.gradient_norm,
            images_per_second: config.train.batch as f64 / clock.elapsed().as_secs_f64(),
            changed: history.iter().filter(|change| change.step == step).cloned().collect(),
        };
        clock = Instant::now();
        state.note_loss(metrics.loss);
        journal.step(&metrics)?;
        keep_going = observe(Event::Step(&metrics));
        if state.taken == total || config.train.is_checkpoint_due(state.taken, saved.elapsed()) {
            state.save(&origin)?;
            saved = Instant::now();
        }
        // After the checkpoint: what a look does not survive costs no step.
        if is_look_due(state.taken) {
            let looked = look_at(&state, &mut journal, observe);
            if looked.is_err() {
                state.save(&origin)?;
            }
            looked?;
            clock = Instant::now();
        }
    }
    state.save(&origin)?;
    Ok(Summary { step: state.taken, total })
}

/// Fails if a parameter would not learn. What is not finite is no matter of the audit: the step itself says where.
fn audit_before_the_first_step(objective: &Objective<'_>, batch: &Batch) -> Result<()> {
    match audit(objective, batch) {
        Err(Error::Loss(lejepa_loss::Error::NotFinite { .. })) => Ok(()),
        Err(Error::Audit { problem: NOT_FINITE, .. }) => Ok(()),
        audited => audited,
    }
}

/// What a user should know about the looks of a run; `last` is the one before this session.
fn watch_notes(config: &TrainConfig, watcher: Option<&Watcher>, last: Option<&WatchMetrics>) -> Vec<String> {
    let Some(watcher) = watcher else {
        let note = "nothing is watched: fewer than 16 images can be read";
        return Vec::from_iter((config.watch.every > 0).then(|| note.into()));
    };
    let mut notes = watcher.notes();
    if let Some(last) = last.filter(|last| last.watched.as_deref() != Some(watcher.fingerprint())) {
        notes.push(format!(
            "from here on other images or splits are watched: looks up to step {} do not compare with later ones",
            last.step
        ));
    }
    notes
}

/// The numbers of a step.
struct Terms {
    loss: f64,
    prediction: f64,
    sigreg: f64,
    gradient_norm: f64,
}

/// Loss and gradients of a batch, or the name of the first tensor that is not finite: then the model is as it
/// was before the step.
fn take_gradients(
    objective: &Objective<'_>,
    batch: &Batch,
    clip: Option<f64>,
) -> Result<std::result::Result<(Terms, Gradients), String>> {
    let statistics = Statistics::of(objective.model)?;
    let (terms, gradients) = match objective.gradients(batch) {
        Ok(found) => found,
        Err(Error::Loss(lejepa_loss::Error::NotFinite { .. })) => {
            statistics.restore()?;
            return Ok(Err(find_culprit(objective, batch, None)?));
        }
        Err(error) => return Err(error),
    };
    let terms = Terms {
        loss: scalar(&terms.loss)?,
        prediction: scalar(&terms.prediction)?,
        sigreg: scalar(&terms.sigreg)?,
        gradient_norm: gradients.norm()?,
    };
    // Mean squares beyond the range of the optimiser's numbers would never come back from there.
    let largest = clip.map_or(terms.gradient_norm, |clip| terms.gradient_norm.min(clip));
    if largest.is_finite() && !((largest * largest) as f32).is_finite() {
        statistics.restore()?;
        let norm = terms.gradient_norm;
        return Ok(Err(format!(
            "the square of the gradients, whose norm is {norm:.1e} (optimizer.clip bounds it)"
        )));
    }
    if !(terms.loss.is_finite() && terms.gradient_norm.is_finite()) {
        statistics.restore()?;
        return Ok(Err(find_culprit(objective, batch, Some(&gradients))?));
    }
    // A variance may overflow where what is divided by it does not.
    if let Some(name) = statistics.first_not_finite()? {
        let culprit = format!("the statistic {name}");
        statistics.restore()?;
        return Ok(Err(culprit));
    }
    Ok(Ok((terms, gradients)))
}

/// Half precision is for graphics cards.
pub(crate) fn check_precision(config: &TrainConfig, device: DeviceChoice) -> Result<()> {
    if config.train.precision == Precision::Bf16 && device == DeviceChoice::Cpu {
        return Err(Error::Setting {
            field: "train.precision",
            expected: "f32 on the CPU".into(),
            got: "bf16".into(),
        });
    }
    Ok(())
}

/// Opens the data; the hashes of all images are added to `hashes`, if somebody wants them.
pub(crate) fn open_batches(
    config: &TrainConfig,
    hashes: Option<&mut Vec<ImageHash>>,
    observe: &mut Observer<'_>,
) -> Result<BatchSource> {
    let data = open_data(config, hashes, observe)?;
    let batches =
        BatchConfig { batch: config.train.batch, seed: config.seed, broken_limit: config.data.broken_limit };
    Ok(BatchSource::new(data, config.views()?, batches)?)
}

/// Opens the data, with a cache before it if the recipe asks for one.
fn open_data(
    config: &TrainConfig,
    mut hashes: Option<&mut Vec<ImageHash>>,
    observe: &mut Observer<'_>,
) -> Result<TrainingData> {
    let cache = match &config.data.cache {
        Some(folder) => Some((folder, config.cache_short_side()?)),
        None => None,
    };
    let mut prepare = |dataset: Box<dyn Dataset>| -> lejepa_data::Result<Box<dyn Dataset>> {
        // Before the cache, in which images are not as they are elsewhere.
        if let Some(hashes) = &mut hashes {
            remember(&*dataset, hashes, observe)?;
        }
        let Some((folder, short_side)) = cache else { return Ok(dataset) };
        let mut hashing = |hashing| observe(Event::Hashing(hashing));
        let mut fingerprinter =
            Fingerprinter::default().remembering(&folder.join(HASHES)).observed(&mut hashing);
        let facts = FileFacts::of(&dataset.files());
        let fingerprint = &dataset.fingerprint(&mut fingerprinter)?;
        let (mut done, images) = (0, dataset.len());
        let place = CachePlace { folder, fingerprint, facts, short_side };
        let cached = Cached::open(dataset, place, &mut |more| {
            done += more;
            observe(Event::Caching { done, images })
        })?;
        Ok(Box::new(cached))
    };
    Ok(config.data.open(&mut prepare)?)
}

/// Adds the hashes of all images that can be read.
fn remember(
    dataset: &dyn Dataset,
    hashes: &mut Vec<ImageHash>,
    observe: &mut Observer<'_>,
) -> lejepa_data::Result<()> {
    /// Images between two looks at the caller.
    const CHUNK: usize = 4096;
    let images = dataset.len();
    for start in (0..images).step_by(CHUNK) {
        let done = images.min(start + CHUNK);
        let chunk = (start..done).into_par_iter();
        hashes.par_extend(chunk.filter_map(|index| dataset.stored(index).ok().map(|stored| stored.hash())));
        if observe(Event::Remembering { done, images }).is_break() {
            return Err(lejepa_data::Error::Stopped);
        }
    }
    Ok(())
}

/// The files of a run, in the order in which they come.
const FILES: [&str; 4] = ["config.toml", "metrics.jsonl", "watch.jsonl", "broken-images.jsonl"];

/// An error if a folder without checkpoints has files under the names of a run's that no run has written.
pub(crate) fn refuse_foreign(run: &Path) -> Result<()> {
    let Some(first) = FILES.iter().find(|name| run.join(name).symlink_metadata().is_ok()) else {
        return Ok(());
    };
    // Runs of earlier versions have no heading, but a log.
    let text = regular_file::read_to_string(&run.join(FILES[0])).unwrap_or_default();
    let is_config = toml::from_str::<TrainConfig>(&text).is_ok() && run.join(FILES[1]).is_file();
    if text.starts_with(run_config::HEADING) || (*first == FILES[0] && is_config) {
        return Ok(());
    }
    Err(Error::Foreign { path: run.join(first) })
}

fn scalar(tensor: &Tensor) -> Result<f64> {
    Ok(tensor.to_dtype(DType::F64)?.to_scalar()?)
}
