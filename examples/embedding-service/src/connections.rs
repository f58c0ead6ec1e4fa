//! Connections that are open: how many there may be, of all peers and of one, and which one gives way.
//!
//! A connection on which nothing is computed only waits for its other end. When there are too many, the one that
//! has waited longest is closed in favour of a new one: clients that open connections and do nothing, or send
//! or read slowly, shut out themselves and nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::peer::Peer;

#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    most_of_peer: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// By number; a number is given whenever a connection begins to wait, so the lowest has waited longest.
    waiting: HashMap<u64, Waiting>,
    of_peer: HashMap<Peer, usize>,
    all: usize,
    last: u64,
    refused: u64,
    closed: u64,
}

#[derive(Debug)]
struct Waiting {
    peer: Peer,
    close: Arc<Notify>,
}

/// One of them; dropping it makes place.
#[derive(Debug)]
pub(crate) struct Connection {
    connections: Arc<Connections>,
    peer: Peer,
    close: Arc<Notify>,
    /// Its number while it waits.
    waiting: Mutex<Option<u64>>,
}

/// How many there are and were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) open: usize,
    /// Turned away, because on all others something was computed.
    pub(crate) refused: u64,
    /// Closed while they waited, in favour of others.
    pub(crate) closed: u64,
}

impl Connections {
    pub(crate) fn new(most: usize, most_of_peer: usize) -> Self {
        Self { most, most_of_peer, open: Mutex::default() }
    }

    /// A place for a new connection, if need be that of one that has waited longest: of the same peer if that
    /// has as many as it may, otherwise of the peer that has most.
    pub(crate) fn admit(self: &Arc<Self>, peer: Peer) -> Option<Arc<Connection>> {
        let close = Arc::new(Notify::new());
        let connection = {
            let mut open = self.open();
            let victim = match open.of_peer.get(&peer) {
                Some(&count) if count >= self.most_of_peer => Some(open.longest_waiting(Some(peer))),
                _ if open.all >= self.most => Some(open.longest_waiting(None)),
                _ => None,
            };
            match victim {
                Some(None) => {
                    open.refused += 1;
                    return None;
                }
                Some(Some(number)) => open.give_way(number),
                None => {}
            }
            open.all += 1;
            *open.of_peer.entry(peer).or_default() += 1;
            Connection { connections: self.clone(), peer, close, waiting: Mutex::new(None) }
        };
        connection.wait();
        Some(Arc::new(connection))
    }

    pub(crate) fn counts(&self) -> Counts {
        let Open { all, refused, closed, .. } = *self.open();
        Counts { open: all, refused, closed }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn longest_waiting(&self, peer: Option<Peer>) -> Option<u64> {
        let rank = |(number, waiting): (&u64, &Waiting)| {
            (std::cmp::Reverse(self.of_peer.get(&waiting.peer).copied()), *number)
        };
        let candidates =
            self.waiting.iter().filter(|(_, waiting)| peer.is_none_or(|peer| waiting.peer == peer));
        candidates.map(rank).min().map(|(_, number)| number)
    }

    fn give_way(&mut self, number: u64) {
        if let Some(waiting) = self.waiting.remove(&number) {
            waiting.close.notify_one();
            self.leave(waiting.peer);
            self.closed += 1;
        }
    }

    fn leave(&mut self, peer: Peer) {
        self.all -= 1;
        if let Some(count) = self.of_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.of_peer.remove(&peer);
            }
        }
    }
}

impl Connection {
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// The other end has to do something: send a request, the rest of one, or read an answer.
    pub(crate) fn wait(&self) {
        let mut open = self.connections.open();
        let mut own = self.waiting();
        if own.is_some_and(|number| !open.waiting.contains_key(&number)) {
            // It gave way already and is about to end.
            return;
        }
        if let Some(number) = own.take() {
            open.waiting.remove(&number);
        }
        open.last += 1;
        let number = open.last;
        *own = Some(number);
        open.waiting.insert(number, Waiting { peer: self.peer, close: self.close.clone() });
    }

    /// Something is computed for it: it does not give way.
    pub(crate) fn work(&self) {
        let mut open = self.connections.open();
        let mut own = self.waiting();
        if let Some(number) = *own
            && open.waiting.remove(&number).is_some()
        {
            *own = None;
        }
    }

    /// Resolves when it gave way to another one.
    pub(crate) async fn gave_way(&self) {
        self.close.notified().await;
    }

    fn waiting(&self) -> MutexGuard<'_, Option<u64>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        let own = *self.waiting();
        match own {
            // Its place was given away.
            Some(number) if open.waiting.remove(&number).is_none() => {}
            _ => open.leave(self.peer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::new([192, 0, 2, last].into())
    }

    fn gave_way(connection: &Connection) -> bool {
        let number = *connection.waiting();
        number.is_some_and(|number| !connection.connections.open().waiting.contains_key(&number))
    }

    #[test]
    fn the_connection_that_has_waited_longest_gives_way() {
        let all = Arc::new(Connections::new(3, 3));
        let [first, second, third] = [1, 2, 3].map(|last| all.admit(peer(last)).unwrap());
        first.work();
        first.wait();
        let fourth = all.admit(peer(4)).unwrap();
        assert_eq!([&first, &second, &third, &fourth].map(|one| gave_way(one)), [false, true, false, false]);
        assert_eq!(all.counts(), Counts { open: 3, refused: 0, closed: 1 });
        drop((first, second, third, fourth));
        assert_eq!(all.counts().open, 0);
        assert!(all.open().of_peer.is_empty() && all.open().waiting.is_empty());
    }

    #[test]
    fn a_peer_with_many_connections_gives_way_before_one_with_few() {
        let all = Arc::new(Connections::new(4, 3));
        let honest = all.admit(peer(1)).unwrap();
        let mut greedy: Vec<_> = (0..3).map(|_| all.admit(peer(2)).unwrap()).collect();
        // Its own limit first: the others do not notice.
        for _ in 0..100 {
            greedy.push(all.admit(peer(2)).unwrap());
        }
        assert_eq!(all.counts().open, 4);
        let _others: Vec<_> = (3..5).map(|last| all.admit(peer(last)).unwrap()).collect();
        assert!(!gave_way(&honest));
        assert_eq!(greedy.iter().filter(|one| !gave_way(one)).count(), 1);
    }

    #[test]
    fn what_is_computed_for_does_not_give_way() {
        let all = Arc::new(Connections::new(2, 2));
        let working = [1, 2].map(|last| all.admit(peer(last)).unwrap());
        working.iter().for_each(|connection| connection.work());
        assert!(all.admit(peer(3)).is_none());
        working[1].wait();
        assert!(all.admit(peer(3)).is_some());
        assert!(!gave_way(&working[0]) && gave_way(&working[1]));
        // It is over for one that gave way, whatever it does next.
        working[1].work();
        working[1].wait();
        assert!(gave_way(&working[1]));
        assert_eq!(all.counts(), Counts { open: 1, refused: 1, closed: 1 });
    }
}
