//! Threads that own the sessions: ONNX Runtime's `run` needs `&mut`, and callers are many.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use lejepa_data::Output;
use ort::session::Session;
use ort::value::TensorRef;

use crate::model::{Model, SessionSettings};
use crate::queue::{Batching, Computed, Job, Queue, Reply, Ticket};
use crate::{Error, Result};

/// What an encoder has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Calls of ONNX Runtime.
    pub runs: u64,
    /// Images in them.
    pub images: u64,
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
}

impl Workers {
    /// One thread for each of these sessions, which compute embeddings.
    pub(crate) fn start(plan: Plan, batching: Batching, sessions: Vec<Session>) -> Result<Self> {
        let queue = Queue::new(batching);
        let shared = Arc::new(Shared { plan, queue, runs: AtomicU64::new(0), images: AtomicU64::new(0) });
        let mut workers = Self { shared: shared.clone(), threads: Vec::with_capacity(sessions.len()) };
        for session in sessions {
            let shared = shared.clone();
            let worker = Worker { sessions: HashMap::from([(Output::Embedding, session)]), shared };
            let thread = std::thread::Builder::new().name("lejepa-embed".into());
            workers.threads.push(thread.spawn(|| worker.work()).map_err(Error::Thread)?);
        }
        Ok(workers)
    }

    pub(crate) fn submit(&self, output: Output, images: usize, pixels: Vec<f32>) -> Ticket {
        self.shared.queue.submit(output, images, pixels)
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

    pub(crate) fn statistics(&self) -> Statistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics { runs: count(&self.shared.runs), images: count(&self.shared.images) }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.queue.close();
        for thread in self.threads.drain(..) {
            // One that drops the encoder itself, in what it does with an answer, cannot wait for itself.
            if thread.thread().id() != std::thread::current().id() {
                // A panic of a worker was its own end; callers got `Error::Stopped`.
                let _ = thread.join();
            }
        }
    }
}

struct Worker {
    shared: Arc<Shared>,
    /// Those of other outputs are made when somebody asks for them.
    sessions: HashMap<Output, Session>,
}

impl Worker {
    fn work(mut self) {
        while let Some(jobs) = self.shared.queue.next_batch() {
            match self.run(&jobs) {
                Ok(answers) => jobs.into_iter().zip(answers).for_each(|(job, answer)| job.answer(Ok(answer))),
                Err(error) => answer_all(jobs, error),
            }
        }
    }

    /// Runs the images of all jobs at once; the answers are in the jobs' order.
    fn run(&mut self, jobs: &[Job]) -> Result<Vec<Computed>> {
        let Some(output) = jobs.first().map(|job| job.output) else { return Ok(Vec::new()) };
        let Shared { plan, runs, images: images_run, .. } = &*self.shared;
        let name = plan.outputs.get(&output).ok_or_else(|| Error::missing_output(output, plan))?;
        let session = match self.sessions.entry(output) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(plan.model.session(name, &plan.settings)?)
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
        let values = run_session(session, plan, name, (images, pixels))?;
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

/// Computes one output of `(images, pixels)`.
pub(crate) fn run_session(
    session: &mut Session,
    plan: &Plan,
    output: &str,
    (images, pixels): (usize, &[f32]),
) -> Result<Computed> {
    let [channels, height, width] = plan.image_shape;
    let input =
        TensorRef::from_array_view(([images, channels, height, width], pixels)).map_err(Error::runtime)?;
    let outputs = session.run(ort::inputs![&*plan.input => input]).map_err(Error::runtime)?;
    let unexpected = |problem: String| Error::NotAnEncoder { name: plan.model.name.clone(), problem };
    let value = outputs.get(output).ok_or_else(|| unexpected(format!("no output named {output}")))?;
    let (shape, values) = value.try_extract_tensor::<f32>().map_err(Error::runtime)?;
    let sizes: Vec<usize> = shape.iter().map(|&size| usize::try_from(size).unwrap_or(0)).collect();
    match sizes.split_first() {
        Some((&batch, rest)) if batch == images && rest.iter().product::<usize>() > 0 => {
            Ok(Computed { shape: rest.to_vec(), values: values.to_vec() })
        }
        _ => Err(unexpected(format!("output {output} has the shape {sizes:?} for {images} images"))),
    }
}

/// One error for everybody who shared a run.
fn answer_all(jobs: Vec<Job>, error: Error) {
    let shared = Arc::new(error);
    jobs.into_iter().for_each(|job| job.answer(Err(Error::Shared(shared.clone()))));
}
