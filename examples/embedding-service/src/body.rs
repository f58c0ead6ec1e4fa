//! The body of a request, of which every byte in memory is counted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::BoxError;
use axum::body::{Body, Bytes};
use futures_util::StreamExt;

use crate::failure::Failure;
use crate::peer::Peer;
use crate::pool::{Exhausted, Pool, Taken};

/// What the bytes that have come take of all that may be in memory; dropping the last of it gives that back.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pool: Arc<Pool>,
    peer: Peer,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    taken: Option<Taken>,
    exhausted: Option<Exhausted>,
}

impl Account {
    pub(crate) fn new(pool: Arc<Pool>, peer: Peer) -> Self {
        Self { pool, peer, state: Arc::default() }
    }

    /// The same body, which ends with an error where there is no place for more of it.
    pub(crate) fn counted(&self, body: Body) -> Body {
        let account = self.clone();
        Body::from_stream(body.into_data_stream().map(move |piece| {
            let piece: Bytes = piece.map_err(BoxError::from)?;
            account.take(piece.len())?;
            Ok::<_, BoxError>(piece)
        }))
    }

    /// Why the body ended, if it was for lack of place.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.state().exhausted.map(|exhausted| Failure::exhausted(exhausted, "bytes of requests"))
    }

    fn take(&self, bytes: usize) -> Result<(), BoxError> {
        let mut state = self.state();
        match self.pool.try_take(self.peer, bytes) {
            Ok(more) => {
                match &mut state.taken {
                    Some(taken) => taken.add(more),
                    none => *none = Some(more),
                }
                Ok(())
            }
            Err(exhausted) => {
                state.exhausted = Some(exhausted);
                Err("no place for the body".into())
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
