//! Bodies of requests that are on their way: which of them give way when there is no place for more bytes.
//!
//! Whoever sends all of a large body but its end would keep others out for as long as a request may take. So the
//! client address that holds the most bytes of incomplete bodies loses its oldest one to the newcomer, and a
//! newcomer that would hold the most itself waits.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::peer::Peer;
use crate::pool::Pool;

/// All bodies that are in memory.
#[derive(Debug)]
pub(crate) struct Bodies {
    /// Their bytes.
    pub(crate) pool: Pool,
    incomplete: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By number: the lowest is the oldest.
    bodies: BTreeMap<u64, Entry>,
    last: u64,
    gave_way: u64,
}

#[derive(Debug)]
struct Entry {
    peer: Peer,
    bytes: usize,
    give_way: Arc<Notify>,
}

/// A body that has not come to its end.
#[derive(Debug)]
pub(crate) struct Incomplete {
    bodies: Arc<Bodies>,
    number: u64,
    give_way: Arc<Notify>,
}

impl Bodies {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool, incomplete: Mutex::default() }
    }

    pub(crate) fn begin(self: &Arc<Self>, peer: Peer) -> Incomplete {
        let give_way = Arc::new(Notify::new());
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.bodies.insert(number, Entry { peer, bytes: 0, give_way: give_way.clone() });
        Incomplete { bodies: self.clone(), number, give_way }
    }

    /// How many have given way so far.
    pub(crate) fn gave_way(&self) -> u64 {
        self.state().gave_way
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.incomplete.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The oldest body of the peer with the most bytes, but the newcomer's own, which asks for so many.
    fn victim(&self, newcomer: u64, asked: usize) -> Option<u64> {
        let own = self.bodies.get(&newcomer)?.peer;
        let mut of_peer = HashMap::from([(own, asked)]);
        for Entry { peer, bytes, .. } in self.bodies.values() {
            *of_peer.entry(*peer).or_default() += bytes;
        }
        // Of several with as many, the one whose oldest body came first: the last largest of them from behind.
        let peers = self.bodies.values().rev().map(|entry| entry.peer);
        let most = peers.max_by_key(|peer| (of_peer.get(peer).copied(), *peer != own))?;
        let mut bodies = self.bodies.iter();
        let oldest =
            bodies.find(|&(&number, entry)| entry.peer == most && entry.bytes > 0 && number != newcomer);
        oldest.map(|(&number, _)| number)
    }
}

impl Incomplete {
    /// More of it is in memory.
    pub(crate) fn grow(&self, bytes: usize) {
        if let Some(entry) = self.bodies.state().bodies.get_mut(&self.number) {
            entry.bytes += bytes;
        }
    }

    /// Has others give way for so many bytes, which are there a moment later.
    pub(crate) fn make_place(&self, bytes: usize) {
        let mut state = self.bodies.state();
        let mut found = 0;
        while found < bytes
            && let Some(victim) = state.victim(self.number, bytes)
            && let Some(entry) = state.bodies.remove(&victim)
        {
            found += entry.bytes;
            state.gave_way += 1;
            entry.give_way.notify_one();
        }
    }

    /// Resolves when it has to end in favour of others.
    pub(crate) async fn gave_way(&self) {
        self.give_way.notified().await;
    }

    pub(crate) fn complete(&self) {
        self.bodies.state().bodies.remove(&self.number);
    }
}

impl Drop for Incomplete {
    fn drop(&mut self) {
        self.complete();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies of these peers and lengths, in this order.
    fn bodies(lengths: &[(u8, usize)]) -> (Arc<Bodies>, Vec<Incomplete>) {
        let bodies = Arc::new(Bodies::new(Pool::new(1000, 500)));
        let begin = |&(last, bytes): &(u8, usize)| {
            let body = bodies.begin(Peer::new([192, 0, 2, last].into()));
            body.grow(bytes);
            body
        };
        let begun = lengths.iter().map(begin).collect();
        (bodies, begun)
    }

    fn left(bodies: &Bodies) -> Vec<u64> {
        bodies.state().bodies.keys().copied().collect()
    }

    #[test]
    fn the_peer_with_the_most_bytes_loses_its_oldest_body() {
        let (all, begun) = bodies(&[(1, 200), (2, 150), (2, 150), (2, 150), (2, 150), (3, 20)]);
        begun[5].make_place(20);
        assert_eq!((left(&all), all.gave_way()), (vec![1, 3, 4, 5, 6], 1));
        begun[5].make_place(200);
        assert_eq!(left(&all), [1, 5, 6], "as many as it takes");
        drop(begun);
        assert!(left(&all).is_empty());
    }

    #[test]
    fn of_peers_with_as_many_bytes_the_first_gives_way() {
        for _ in 0..20 {
            let (all, begun) = bodies(&[(4, 300), (2, 300), (3, 300), (1, 10)]);
            begun[3].make_place(100);
            assert_eq!(left(&all), [2, 3, 4]);
        }
    }

    #[test]
    fn who_holds_the_most_takes_nothing_from_others() {
        let (all, begun) = bodies(&[(1, 10), (2, 300)]);
        begun[1].make_place(100);
        assert_eq!(left(&all), [1, 2]);
        let (all, begun) = bodies(&[(1, 10), (2, 300), (2, 300)]);
        begun[2].make_place(100);
        assert_eq!(left(&all), [1, 3], "but from its own");
        begun[2].complete();
        begun[0].make_place(100);
        assert_eq!(left(&all), [1], "what is complete stays");
    }
}
