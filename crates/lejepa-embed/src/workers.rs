//! Threads that own the sessions: ONNX Runtime's `run` needs `&mut`, and callers are many.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lejepa_data::Output;
use ort::session::Session;
use ort::value::TensorRef;

use crate::memory_limit::within_memory;
use crate::model::{Model, SessionSettings};
use crate::queue::{Batching, Computed, Job, Queue, Reply, Ticket};
use crate::time_limit::{Stop, within};
use crate::{Error, FileLimits, Result};

/// What an encoder has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Calls of ONNX Runtime.
    pub runs: u64,
    /// Images in them.
    pub images: u64,
}

/// How the sessions of an encoder are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Sessions that were opened.
    pub sessions: usize,
    /// Those of them that still have a thread, which is all of them unless something is very wrong.
    pub alive: usize,
    /// For how long the longest of the inferences that run now has been running.
    pub longest: Option<Duration>,
}

/// What every worker knows.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) model: Model,
    pub(crate) settings: SessionSettings,
    /// Name of the graph's input.
    pub(crate) input: String,
    /// Names of the graph's outputs.
    pub(crate) outputs: HashMap<Output, String>,
    /// `(channels, height, width)`.
    pub(crate) image_shape: [usize; 3],
    pub(crate) limits: FileLimits,
}

#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    plan: Plan,
    queue: Queue,
    runs: AtomicU64,
    images: AtomicU64,
    alive: AtomicUsize,
    /// What every session computes, if it does.
    running: Vec<Mutex<Option<Run>>>,
}

/// An inference that has not ended.
#[derive(Debug, Clone)]
struct Run {
    since: Instant,
    stop: Option<Stop>,
}

impl Workers {
    /// One thread for each of these sessions, which compute embeddings.
    pub(crate) fn start(plan: Plan, batching: Batching, sessions: Vec<Session>) -> Result<Self> {
        let queue = Queue::new(batching);
        let running = sessions.iter().map(|_| Mutex::default()).collect();
        let (runs, images, alive) = (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(0));
        let shared = Arc::new(Shared { plan, queue, runs, images, alive, running });
        let mut workers = Self { shared: shared.clone(), threads: Vec::with_capacity(sessions.len()) };
        for (number, session) in sessions.into_iter().enumerate() {
            let present = Present::new(shared.clone());
            let worker = Worker { number, sessions: HashMap::from([(Output::Embedding, session)]), present };
            let thread = std::thread::Builder::new().name("lejepa-embed".into());
            workers.threads.push(thread.spawn(|| worker.work()).map_err(Error::Thread)?);
        }
        Ok(workers)
    }

    pub(crate) fn submit(&self, output: Output, images: usize, pixels: Vec<f32>) -> Ticket {
        self.shared.queue.submit(output, images, pixels)
    }

    /// One image that is given up after a time, and may not take all memory.
    pub(crate) fn try_one(&self, output: Output, pixels: Vec<f32>) -> Result<Computed> {
        let Plan { limits, model, settings, .. } = &self.shared.plan;
        let time = limits.time_for(model.length());
        let memory = limits.memory_for(model.length(), 1, settings.provider);
        within_memory(memory, &model.name, || {
            self.shared.queue.submit_stoppable(output, pixels)?.wait_within(time, &model.name)
        })
    }

    pub(crate) fn submit_then(&self, output: Output, images: usize, pixels: Vec<f32>, reply: Reply) {
        self.shared.queue.submit_then(output, images, pixels, reply);
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.shared.plan
    }

    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }

    pub(crate) fn condition(&self) -> Condition {
        let runs = (0..self.threads.len()).filter_map(|number| self.shared.run_of(number));
        Condition {
            sessions: self.threads.len(),
            alive: self.shared.alive.load(Ordering::Relaxed),
            longest: runs.map(|run| run.since.elapsed()).max(),
        }
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics { runs: count(&self.shared.runs), images: count(&self.shared.images) }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.queue.close();
        for (number, thread) in self.threads.drain(..).enumerate() {
            // One that was given up may be busy with a single node for hours, and nobody wants what it computes.
            let run = self.shared.run_of(number);
            let is_given_up = run.and_then(|run| run.stop).is_some_and(|stop| stop.is_stopped());
            // One that drops the encoder itself, in what it does with an answer, cannot wait for itself.
            if !is_given_up && thread.thread().id() != std::thread::current().id() {
                // A panic of a worker was its own end; callers got `Error::Stopped`.
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    /// What the session of this number computes.
    fn run_of(&self, number: usize) -> Option<Run> {
        self.running.get(number)?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A worker as the others see it. When the last one is gone, for whatever reason, callers get an error.
struct Present(Arc<Shared>);

impl Present {
    fn new(shared: Arc<Shared>) -> Self {
        shared.alive.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        if self.0.alive.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.queue.abandon();
        }
    }
}

struct Worker {
    number: usize,
    present: Present,
    /// Those of other outputs are made when somebody asks for them.
    sessions: HashMap<Output, Session>,
}

impl Worker {
    fn work(mut self) {
        let shared = self.present.0.clone();
        while let Some(jobs) = shared.queue.next_batch() {
            let stop = jobs.first().and_then(|job| job.stop.clone());
            self.note(Some(Run { since: Instant::now(), stop }));
            // A panic costs those who shared the run an answer, and nobody else anything.
            let result = catch_unwind(AssertUnwindSafe(|| self.run(&jobs)));
            self.note(None);
            match result {
                Ok(Ok(answers)) => jobs.into_iter().zip(answers).for_each(|(job, row)| answer(job, Ok(row))),
                Ok(Err(error)) => answer_all(jobs, error),
                Err(_) => {
                    // It may be in any state, and is made again when it is needed.
                    jobs.first().map(|job| self.sessions.remove(&job.output));
                    answer_all(jobs, Error::Panicked);
                }
            }
        }
    }

    fn note(&self, run: Option<Run>) {
        *self.present.0.running[self.number].lock().unwrap_or_else(PoisonError::into_inner) = run;
    }

    /// Runs the images of all jobs at once; the answers are in the jobs' order.
    fn run(&mut self, jobs: &[Job]) -> Result<Vec<Computed>> {
        let Some(output) = jobs.first().map(|job| job.output) else { return Ok(Vec::new()) };
        let Shared { plan, runs, images: images_run, .. } = &*self.present.0;
        let name = plan.outputs.get(&output).ok_or_else(|| Error::missing_output(output, plan))?;
        let session = match self.sessions.entry(output) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let (shared, name) = (self.present.0.clone(), name.clone());
                let limit = plan.limits.time_for(plan.model.length());
                let session = within(limit, &plan.model.name, move |cancel| {
                    shared.plan.model.session(&name, &shared.plan.settings, cancel)
                });
                entry.insert(session?)
            }
        };
        let images = jobs.iter().map(|job| job.images).sum();
        let joined: Vec<f32>;
        let pixels = match jobs {
            [job] => &job.pixels,
            _ => {
                joined = jobs.iter().flat_map(|job| &job.pixels).copied().collect();
                &joined
            }
        };
        let stop = jobs.first().and_then(|job| job.stop.as_ref());
        let values = run_session(session, plan, name, (images, pixels), stop)?;
        runs.fetch_add(1, Ordering::Relaxed);
        images_run.fetch_add(images as u64, Ordering::Relaxed);
        if jobs.len() == 1 {
            return Ok(vec![values]);
        }
        let per_image = values.shape.iter().product::<usize>();
        let mut rest = values.values.as_slice();
        let answers = jobs.iter().map(|job| {
            let (own, left) = rest.split_at(job.images * per_image);
            rest = left;
            Computed { shape: values.shape.clone(), values: own.to_vec() }
        });
        Ok(answers.collect())
    }
}

/// Values of one image; a file that makes more of it is no encoder.
const MOST_VALUES: usize = 1 << 28;

/// Computes one output of `(images, pixels)`; may be stopped.
pub(crate) fn run_session(
    session: &mut Session,
    plan: &Plan,
    output: &str,
    (images, pixels): (usize, &[f32]),
    stop: Option<&Stop>,
) -> Result<Computed> {
    let [channels, height, width] = plan.image_shape;
    let input =
        TensorRef::from_array_view(([images, channels, height, width], pixels)).map_err(Error::runtime)?;
    let inputs = ort::inputs![&*plan.input => input];
    let outputs = match stop {
        Some(stop) => session.run_with_options(inputs, stop.options()),
        None => session.run(inputs),
    };
    let outputs = outputs.map_err(Error::runtime)?;
    let unexpected = |problem: String| Error::NotAnEncoder { name: plan.model.name.clone(), problem };
    let value = outputs.get(output).ok_or_else(|| unexpected(format!("no output named {output}")))?;
    let (shape, values) = value.try_extract_tensor::<f32>().map_err(Error::runtime)?;
    let sizes: Vec<usize> = shape.iter().map(|&size| usize::try_from(size).unwrap_or(0)).collect();
    let most = images.saturating_mul(MOST_VALUES);
    match sizes.split_first() {
        Some((&batch, rest))
            if batch == images && rest.iter().product::<usize>() > 0 && values.len() <= most =>
        {
            Ok(Computed { shape: rest.to_vec(), values: values.to_vec() })
        }
        _ => Err(unexpected(format!("output {output} has the shape {sizes:?} for {images} images"))),
    }
}

/// One error for everybody who shared a run.
fn answer_all(jobs: Vec<Job>, error: Error) {
    let shared = Arc::new(error);
    jobs.into_iter().for_each(|job| answer(job, Err(Error::Shared(shared.clone()))));
}

/// What a caller does with its answer is run here; that it panics is between it and the panic hook, which has
/// told.
fn answer(job: Job, answer: Result<Computed>) {
    let _ = catch_unwind(AssertUnwindSafe(|| job.answer(answer)));
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::Encoder;
    use crate::onnx_file::sample::{DIM, PIXELS, Weights, description, model};

    /// As after a time limit, with a node that takes for ever.
    #[test]
    fn a_worker_that_was_given_up_is_not_waited_for() {
        let matrix = Weights::Inside(&[1.; PIXELS * DIM]);
        let builder = Encoder::builder().foreign(description("embedding"));
        let encoder = builder.open_bytes("encoder.onnx", &model(&matrix, &matrix)).unwrap();
        let mut workers = Arc::into_inner(encoder.workers).unwrap();
        let (stop, (end, ended)) = (Stop::new().unwrap(), channel::<()>());
        let busy = std::thread::spawn(move || {
            let _ = ended.recv();
        });
        let idle = std::mem::replace(&mut workers.threads[0], busy);
        let run = Run { since: Instant::now(), stop: Some(stop.clone()) };
        *workers.shared.running[0].lock().unwrap() = Some(run);
        stop.stop();
        assert!(workers.condition().longest.is_some());
        drop(workers);
        assert!(end.send(()).is_ok(), "the busy one still runs");
        idle.join().unwrap();
    }
}
