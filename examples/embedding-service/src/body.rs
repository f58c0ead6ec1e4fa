//! The body of a request, of which every byte in memory is counted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::BoxError;
use axum::body::{Body, Bytes};
use futures_util::{StreamExt, stream};

use crate::bodies::{Bodies, Incomplete};
use crate::failure::Failure;
use crate::peer::Peer;
use crate::pool::{Exhausted, Taken};

/// What the bytes that have come take of all that may be in memory; dropping the last of it gives that back.
#[derive(Debug, Clone)]
pub(crate) struct Account(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bodies: Arc<Bodies>,
    peer: Peer,
    state: Mutex<State>,
    incomplete: Incomplete,
}

#[derive(Debug, Default)]
struct State {
    taken: Option<Taken>,
    exhausted: Option<Exhausted>,
}

impl Account {
    pub(crate) fn new(bodies: Arc<Bodies>, peer: Peer) -> Self {
        let incomplete = bodies.begin(peer);
        Self(Arc::new(Inner { bodies, peer, state: Mutex::default(), incomplete }))
    }

    /// The same body, which ends with an error where there is no place for more of it.
    pub(crate) fn counted(&self, body: Body) -> Body {
        let start = (body.into_data_stream(), self.clone());
        Body::from_stream(stream::unfold(start, |(mut pieces, account)| async move {
            let gave_way = || Err(account.exhausted(Exhausted::All));
            let piece = tokio::select! {
                biased;
                () = account.0.incomplete.gave_way() => gave_way(),
                piece = pieces.next() => match piece? {
                    Err(error) => Err(BoxError::from(error)),
                    Ok(piece) => tokio::select! {
                        biased;
                        () = account.0.incomplete.gave_way() => gave_way(),
                        taken = account.take(piece.len()) => taken.map(|()| piece),
                    },
                },
            };
            Some((piece as Result<Bytes, BoxError>, (pieces, account)))
        }))
    }

    /// All of it has come: it does not give way any more.
    pub(crate) fn complete(&self) {
        self.0.incomplete.complete();
    }

    /// Why the body ended, or what it still waits for, if it was for lack of place.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.state().exhausted.map(|exhausted| Failure::exhausted(exhausted, "bytes of requests"))
    }

    /// Place for more. Where there is none, larger bodies give way, or those in work are waited for.
    async fn take(&self, bytes: usize) -> Result<(), BoxError> {
        let Inner { bodies, peer, incomplete, .. } = &*self.0;
        let more = match bodies.pool.try_take(*peer, bytes) {
            Ok(more) => more,
            Err(Exhausted::Share) => return Err(self.exhausted(Exhausted::Share)),
            Err(Exhausted::All) => {
                incomplete.make_place(bytes);
                self.state().exhausted = Some(Exhausted::All);
                let more = bodies.pool.take(*peer, bytes).await.ok_or("no place for the body")?;
                self.state().exhausted = None;
                more
            }
        };
        match &mut self.state().taken {
            Some(taken) => taken.add(more),
            none => *none = Some(more),
        }
        incomplete.grow(bytes);
        Ok(())
    }

    fn exhausted(&self, exhausted: Exhausted) -> BoxError {
        self.state().exhausted = Some(exhausted);
        "no place for the body".into()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
