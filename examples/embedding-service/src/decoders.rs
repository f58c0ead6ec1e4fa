//! Threads that decode images. A decoder cannot be stopped from outside; one that takes longer than a request may
//! goes on, at the cost of whoever sent the image, and its place goes to others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use lejepa_embed::printable_name;

use crate::failure::Failure;
use crate::peer::Peer;
use crate::pool::{Pool, Taken};

/// Pixels that memory is counted in.
const THOUSAND: usize = 1000;

/// Places for decoders, and memory for what they decode.
#[derive(Debug)]
pub(crate) struct Decoders {
    places: Pool,
    /// In thousands.
    pixels: Pool,
    /// After it a decoder is overdue.
    patience: Duration,
    running: Arc<Running>,
}

/// Since when every decoder has been running, by number.
#[derive(Debug, Default)]
struct Running(Mutex<(u64, HashMap<u64, Instant>)>);

/// What a decoder holds while it runs.
#[derive(Debug)]
struct Turn {
    number: u64,
    running: Arc<Running>,
    taken: Mutex<Vec<Taken>>,
}

impl Decoders {
    /// So many places, and pixels of all images and of the largest one, of which one client may have a share.
    pub(crate) fn new(
        places: usize,
        (all_pixels, largest): (usize, usize),
        share_of: impl Fn(usize) -> usize,
        patience: Duration,
    ) -> Self {
        let (all, largest) = (all_pixels.div_ceil(THOUSAND), largest.div_ceil(THOUSAND));
        Self {
            places: Pool::new(places, share_of(places)),
            // An image of the largest size must fit.
            pixels: Pool::new(all, share_of(all).max(largest)),
            patience,
            running: Arc::default(),
        }
    }

    /// Runs a decoder of so many pixels on a thread of its own. What it does not survive is an image that cannot be
    /// decoded.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        peer: Peer,
        pixels: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let memory = match pixels {
            0 => None,
            pixels => self.pixels.take(peer, pixels.div_ceil(THOUSAND)).await,
        };
        let place = self.places.take(peer, 1).await;
        let turn = self.running.begin(memory.into_iter().chain(place).collect());
        let overdue = tokio::spawn(Turn::watch(Arc::downgrade(&turn), self.patience));
        let decoded = tokio::task::spawn_blocking(move || {
            let decoded = work();
            overdue.abort();
            drop(turn);
            decoded
        });
        decoded.await.map_err(|stopped| {
            eprintln!("a decoder failed: {}", printable_name(&stopped.to_string()));
            Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "cannot decode image")
        })
    }

    /// For how long the longest of them has been running.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.running.of_all().1.values().map(Instant::elapsed).max()
    }

    /// Those that take longer than a request may.
    pub(crate) fn overdue(&self) -> usize {
        self.running.of_all().1.values().filter(|since| since.elapsed() > self.patience).count()
    }
}

impl Running {
    fn begin(self: &Arc<Self>, taken: Vec<Taken>) -> Arc<Turn> {
        let mut all = self.of_all();
        all.0 += 1;
        let number = all.0;
        all.1.insert(number, Instant::now());
        drop(all);
        Arc::new(Turn { number, running: self.clone(), taken: Mutex::new(taken) })
    }

    fn of_all(&self) -> MutexGuard<'_, (u64, HashMap<u64, Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Lends to others what a decoder holds when it is overdue.
    async fn watch(turn: Weak<Self>, patience: Duration) {
        tokio::time::sleep(patience).await;
        if let Some(turn) = turn.upgrade() {
            turn.taken.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(Taken::lend);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.running.of_all().1.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::new([192, 0, 2, last].into())
    }

    /// Decoders of these clients, two of each, that run until they are told.
    fn stuck(decoders: &Arc<Decoders>, peers: &[u8]) -> Vec<Sender<()>> {
        let twice = peers.iter().flat_map(|&last| [last, last]);
        let begin = |last| {
            let (sender, receiver) = channel();
            let decoders = decoders.clone();
            tokio::spawn(
                async move { decoders.run(peer(last), 1000, move || receiver.recv().is_ok()).await },
            );
            sender
        };
        twice.map(begin).collect()
    }

    async fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_does_not_come_to_an_end_keeps_nobody_else_out() {
        let patience = Duration::from_millis(30);
        let decoders = Arc::new(Decoders::new(4, (4000, 1000), |amount| amount / 2, patience));
        let ends = stuck(&decoders, &[1, 2]);
        until(|| decoders.overdue() == 4).await;
        assert!(decoders.longest().unwrap() > patience);
        assert_eq!(decoders.run(peer(3), 2000, || 7).await.unwrap(), 7);
        // The clients that sent it have no place before it ends.
        let again = decoders.run(peer(1), 1000, || 7);
        assert!(tokio::time::timeout(patience, again).await.is_err());
        drop(ends);
        until(|| decoders.longest().is_none()).await;
        assert_eq!(decoders.run(peer(1), 1000, || 7).await.unwrap(), 7);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn no_more_is_lent_than_there_is() {
        let decoders = Arc::new(Decoders::new(2, (4000, 1000), |amount| amount, Duration::from_millis(5)));
        // One client is all clients, behind a proxy: its share is not kept either.
        let ends = stuck(&decoders, &[1, 1]);
        until(|| decoders.overdue() == 4).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let more = decoders.run(peer(1), 1000, || 7);
        assert!(tokio::time::timeout(Duration::from_millis(30), more).await.is_err());
        drop(ends);
    }
}
