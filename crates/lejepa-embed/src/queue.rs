//! Work that waits for a session, and how it is put together into batches.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lejepa_data::Output;

use crate::time_limit::Stop;
use crate::{Error, Result};

/// What one caller wants computed.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) output: Output,
    pub(crate) images: usize,
    /// `(images, channels, height, width)`.
    pub(crate) pixels: Vec<f32>,
    /// Stops its run, which it then shares with no other.
    pub(crate) stop: Option<Stop>,
    reply: Reply,
    since: Instant,
}

/// Takes the answer of a job.
pub(crate) struct Reply(pub(crate) Box<dyn FnOnce(Result<Computed>) + Send>);

/// What came out for one job.
#[derive(Debug)]
pub(crate) struct Computed {
    /// Shape of the output for one image.
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

/// The right to the answer of a job.
#[derive(Debug)]
pub(crate) struct Ticket(Receiver<Result<Computed>>);

/// The same of a job that can be stopped.
#[derive(Debug)]
pub(crate) struct StoppableTicket(Ticket, Stop);

impl StoppableTicket {
    /// Waits no longer than this.
    pub(crate) fn wait_within(self, limit: Duration, name: &str) -> Result<Computed> {
        let Self(Ticket(receiver), stop) = self;
        match receiver.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => Err(Error::Stopped),
            Err(RecvTimeoutError::Timeout) => {
                stop.stop();
                Err(Error::TimeLimit { name: name.into(), limit })
            }
        }
    }
}

impl Ticket {
    pub(crate) fn wait(self) -> Result<Computed> {
        self.0.recv().unwrap_or(Err(Error::Stopped))
    }
}

impl Job {
    pub(crate) fn answer(self, answer: Result<Computed>) {
        (self.reply.0)(answer);
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reply").finish_non_exhaustive()
    }
}

/// How jobs are put together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batching {
    /// Most images of a run.
    pub(crate) images: usize,
    /// How long the oldest job waits for company.
    pub(crate) latency: Duration,
}

#[derive(Debug)]
pub(crate) struct Queue {
    batching: Batching,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Queue {
    pub(crate) fn new(batching: Batching) -> Self {
        Self { batching, state: Mutex::default(), arrived: Condvar::new() }
    }

    pub(crate) fn submit(&self, output: Output, images: usize, pixels: Vec<f32>) -> Ticket {
        let (sender, receiver) = sync_channel(1);
        // Nobody is waiting any more if sending fails.
        let reply = Reply(Box::new(move |answer| drop(sender.send(answer))));
        self.submit_then(output, images, pixels, reply);
        Ticket(receiver)
    }

    /// One image whose run can be stopped.
    pub(crate) fn submit_stoppable(&self, output: Output, pixels: Vec<f32>) -> Result<StoppableTicket> {
        let stop = Stop::new()?;
        let (sender, receiver) = sync_channel(1);
        let reply = Reply(Box::new(move |answer| drop(sender.send(answer))));
        let since = Instant::now();
        self.push(Job { output, images: 1, pixels, stop: Some(stop.clone()), reply, since });
        Ok(StoppableTicket(Ticket(receiver), stop))
    }

    /// The same for callers that do not wait.
    pub(crate) fn submit_then(&self, output: Output, images: usize, pixels: Vec<f32>, reply: Reply) {
        self.push(Job { output, images, pixels, stop: None, reply, since: Instant::now() });
    }

    fn push(&self, job: Job) {
        let mut state = self.state();
        // Dropped where nobody will work on it: the caller learns that the encoder has stopped.
        if !state.closed {
            state.jobs.push_back(job);
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Nobody works any more: jobs are dropped, those that are there and those to come.
    pub(crate) fn abandon(&self) {
        self.close();
        let jobs = std::mem::take(&mut self.state().jobs);
        drop(jobs);
    }

    /// No more jobs; workers finish those that are there.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.arrived.notify_all();
    }

    /// Waits for jobs of one output, at most a batch of them. `None` when the queue is closed and empty.
    pub(crate) fn next_batch(&self) -> Option<Vec<Job>> {
        let mut state = self.state();
        loop {
            let Some(first) = state.jobs.front() else {
                if state.closed {
                    return None;
                }
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (output, waited) = (first.output, first.since.elapsed());
            let left = self.batching.latency.saturating_sub(waited);
            if left.is_zero() || state.closed || state.images_of(output) >= self.batching.images {
                return Some(state.take(output, self.batching.images));
            }
            let waited = self.arrived.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn images_of(&self, output: Output) -> usize {
        self.jobs.iter().filter(|job| job.output == output).map(|job| job.images).sum()
    }

    /// Jobs of an output in their order, as many as fit; the first one always does.
    fn take(&mut self, output: Output, most: usize) -> Vec<Job> {
        let (mut taken, mut left, mut images) = (Vec::new(), VecDeque::new(), 0);
        for job in self.jobs.drain(..) {
            let is_company = job.stop.is_none() && images + job.images <= most;
            if job.output == output && (taken.is_empty() || is_company) {
                images += if job.stop.is_some() { most } else { job.images };
                taken.push(job);
            } else {
                left.push_back(job);
            }
        }
        self.jobs = left;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(images: usize, latency: Duration) -> Queue {
        Queue::new(Batching { images, latency })
    }

    fn images(batch: Option<Vec<Job>>) -> Vec<usize> {
        batch.unwrap().iter().map(|job| job.images).collect()
    }

    #[test]
    fn waiting_jobs_share_a_run_up_to_the_size_of_a_batch() {
        let queue = queue(4, Duration::ZERO);
        let tickets = [1, 2, 2, 1].map(|images| queue.submit(Output::Embedding, images, Vec::new()));
        assert_eq!(images(queue.next_batch()), [1, 2, 1]);
        assert_eq!(images(queue.next_batch()), [2]);
        drop(tickets);
    }

    #[test]
    fn only_jobs_of_the_same_output_share_a_run() {
        let queue = queue(4, Duration::ZERO);
        let outputs = [Output::PatchTokens, Output::Embedding, Output::PatchTokens];
        let tickets = outputs.map(|output| queue.submit(output, 1, Vec::new()));
        assert_eq!(images(queue.next_batch()), [1, 1]);
        assert_eq!(queue.next_batch().unwrap()[0].output, Output::Embedding);
        drop(tickets);
    }

    #[test]
    fn a_job_waits_for_company_until_the_batch_is_full_and_no_longer_than_the_bound() {
        // Much longer than the test may take: what returns does so because the batch is full.
        let patient = queue(2, Duration::from_secs(3600));
        std::thread::scope(|scope| {
            let batch = scope.spawn(|| images(patient.next_batch()));
            let tickets = [1, 1].map(|images| patient.submit(Output::Embedding, images, Vec::new()));
            assert_eq!(batch.join().unwrap(), [1, 1]);
            drop(tickets);
        });
        let bounded = queue(2, Duration::from_millis(5));
        let _ticket = bounded.submit(Output::Embedding, 1, Vec::new());
        assert_eq!(images(bounded.next_batch()), [1]);
    }

    #[test]
    fn an_abandoned_queue_leaves_nobody_waiting() {
        let queue = queue(2, Duration::ZERO);
        let before = queue.submit(Output::Embedding, 1, Vec::new());
        queue.abandon();
        let after = queue.submit(Output::Embedding, 1, Vec::new());
        assert!(matches!(before.wait(), Err(Error::Stopped)));
        assert!(matches!(after.wait(), Err(Error::Stopped)));
    }

    #[test]
    fn a_closed_queue_gives_out_what_it_has_and_then_ends() {
        let queue = queue(2, Duration::from_secs(3600));
        let ticket = queue.submit(Output::Embedding, 1, Vec::new());
        queue.close();
        drop(queue.next_batch());
        assert!(queue.next_batch().is_none());
        assert!(matches!(ticket.wait(), Err(Error::Stopped)));
    }
}
