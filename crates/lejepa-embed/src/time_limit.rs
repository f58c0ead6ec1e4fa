//! Work that is given up after a time: opening a session and running it for the first time.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ort::session::RunOptions;
use ort::session::builder::LoadCanceler;

use crate::{Error, Result};

/// Tells ONNX Runtime to stop what it does. It looks between two nodes.
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_over: bool,
    loading: Vec<LoadCanceler>,
    running: Vec<Stop>,
}

/// Stops one run.
#[derive(Clone)]
pub(crate) struct Stop(Arc<(RunOptions, AtomicBool)>);

impl fmt::Debug for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stop").finish_non_exhaustive()
    }
}

impl Stop {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Arc::new((RunOptions::new().map_err(Error::runtime)?, AtomicBool::new(false)))))
    }

    /// To run with.
    pub(crate) fn options(&self) -> &RunOptions {
        &self.0.0
    }

    pub(crate) fn stop(&self) {
        self.0.1.store(true, Ordering::Relaxed);
        // It fails only where nothing runs any more.
        let _ = self.0.0.terminate();
    }

    /// Whether the run was given up: it ends behind the node that it computes, whenever that is.
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.1.load(Ordering::Relaxed)
    }
}

impl Cancel {
    pub(crate) fn loading(&self, loading: LoadCanceler) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            let _ = loading.cancel();
        }
        state.loading.push(loading);
    }

    pub(crate) fn running(&self) -> Result<Stop> {
        let stop = Stop::new()?;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            stop.stop();
        }
        state.running.push(stop.clone());
        Ok(stop)
    }

    pub(crate) fn cancel(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        // What fails here has ended already.
        state.loading.iter().for_each(|loading| drop(loading.cancel()));
        state.running.iter().for_each(Stop::stop);
    }
}

/// Does something on a thread of its own. After the time it is told to stop and no longer waited for, even if
/// a single node keeps it from noticing.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    name: &str,
    work: impl FnOnce(&Cancel) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (sender, result) = sync_channel(1);
    let cancel = Cancel::default();
    let own = cancel.clone();
    let thread = std::thread::Builder::new().name("lejepa-open".into());
    // Nobody is waiting any more if sending fails.
    thread.spawn(move || drop(sender.send(work(&own)))).map_err(Error::Thread)?;
    match result.recv_timeout(limit) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => {
            cancel.cancel();
            Err(Error::TimeLimit { name: name.into(), limit })
        }
        Err(RecvTimeoutError::Disconnected) => Err(Error::Panicked),
    }
}
