//! Something that there is a limited amount of, of which one peer gets no more than its share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::peer::Peer;

/// Places, bytes or kilobytes. Who waits gets them in order of arrival, and no peer has more than its share in
/// use or waiting for the rest: behind a peer that wants everything, another one waits for a share at most.
#[derive(Debug)]
pub(crate) struct Pool {
    all: Arc<Semaphore>,
    amount: usize,
    share: usize,
    /// As much again, for those who do not give back in time.
    spare: Arc<Semaphore>,
    /// What is left of the share of every peer that uses or waits for something.
    shares: Mutex<HashMap<Peer, Weak<Semaphore>>>,
}

/// What somebody took; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Absent once it was lent where a share is everything.
    own: Option<OwnedSemaphorePermit>,
    all: OwnedSemaphorePermit,
    spare: Arc<Semaphore>,
    /// Whether one peer may have everything, as behind a proxy.
    is_undivided: bool,
}

/// Why nothing could be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// The peer has its share already.
    Share,
    /// Nothing is left for anybody.
    All,
}

/// Peers that are forgotten only when there are more.
const REMEMBERED: usize = 1024;

impl Pool {
    pub(crate) fn new(amount: usize, share: usize) -> Self {
        let amount = amount.clamp(1, Semaphore::MAX_PERMITS);
        let all = Arc::new(Semaphore::new(amount));
        let spare = Arc::new(Semaphore::new(amount));
        Self { all, amount, share: share.clamp(1, amount), spare, shares: Mutex::default() }
    }

    /// What is in use.
    pub(crate) fn used(&self) -> usize {
        self.amount - self.all.available_permits()
    }

    /// Takes some without waiting.
    pub(crate) fn try_take(&self, peer: Peer, amount: usize) -> Result<Taken, Exhausted> {
        let amount = u32::try_from(amount).map_err(|_| Exhausted::Share)?;
        let own = self.share_of(peer).try_acquire_many_owned(amount).map_err(|_| Exhausted::Share)?;
        let all = self.all.clone().try_acquire_many_owned(amount).map_err(|_| Exhausted::All)?;
        Ok(self.taken(own, all))
    }

    /// Takes some as soon as there is so much; never more than a share. Nothing only if the pool was closed,
    /// which does not happen.
    pub(crate) async fn take(&self, peer: Peer, amount: usize) -> Option<Taken> {
        let amount = u32::try_from(amount.min(self.share)).ok()?;
        let own = self.share_of(peer).acquire_many_owned(amount).await.ok()?;
        let all = self.all.clone().acquire_many_owned(amount).await.ok()?;
        Some(self.taken(own, all))
    }

    fn taken(&self, own: OwnedSemaphorePermit, all: OwnedSemaphorePermit) -> Taken {
        let is_undivided = self.share == self.amount;
        Taken { own: Some(own), all, spare: self.spare.clone(), is_undivided }
    }

    fn share_of(&self, peer: Peer) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&peer).and_then(Weak::upgrade) {
            return share;
        }
        if shares.len() >= REMEMBERED {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.share));
        shares.insert(peer, Arc::downgrade(&share));
        share
    }
}

impl Taken {
    /// Both as one.
    pub(crate) fn add(&mut self, other: Self) {
        match (&mut self.own, other.own) {
            (Some(own), Some(other)) => own.merge(other),
            (own, other) => *own = own.take().or(other),
        }
        self.all.merge(other.all);
    }

    /// Lets others have as much, while it is still in use and the peer's own share stays taken. As much as there
    /// is can be lent in all; beyond that nothing changes.
    pub(crate) fn lend(&mut self) {
        let amount = u32::try_from(self.all.num_permits()).unwrap_or(u32::MAX);
        if let Ok(spare) = self.spare.clone().try_acquire_many_owned(amount) {
            self.all = spare;
            if self.is_undivided {
                self.own = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::new([192, 0, 2, last].into())
    }

    #[test]
    fn one_peer_gets_its_share_and_two_get_everything() {
        let pool = Pool::new(4, 2);
        let first = [pool.try_take(peer(1), 1).unwrap(), pool.try_take(peer(1), 1).unwrap()];
        assert_eq!(pool.try_take(peer(1), 1).unwrap_err(), Exhausted::Share);
        let mut second = pool.try_take(peer(2), 1).unwrap();
        second.add(pool.try_take(peer(2), 1).unwrap());
        assert_eq!(pool.try_take(peer(3), 1).unwrap_err(), Exhausted::All);
        assert_eq!(pool.used(), 4);
        drop((first, second));
        assert_eq!(pool.used(), 0);
        assert!(pool.try_take(peer(3), 2).is_ok());
    }

    #[tokio::test]
    async fn behind_a_peer_that_wants_everything_another_one_waits_for_a_share_only() {
        let pool = Arc::new(Pool::new(4, 2));
        let greedy: Vec<_> = (0..100)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    let _taken = pool.take(peer(1), 2).await;
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                })
            })
            .collect();
        while pool.used() < 2 {
            tokio::task::yield_now().await;
        }
        // More than a share is cut to one, so that nobody waits for ever.
        assert!(pool.take(peer(2), 1000).await.is_some());
        greedy.iter().for_each(|task| task.abort());
    }

    #[test]
    fn peers_that_use_nothing_are_forgotten() {
        let pool = Pool::new(4, 2);
        for number in 0..4 * REMEMBERED as u32 {
            drop(pool.try_take(Peer::new(number.to_be_bytes().into()), 1));
        }
        assert!(pool.shares.lock().unwrap().len() <= REMEMBERED);
    }
}
