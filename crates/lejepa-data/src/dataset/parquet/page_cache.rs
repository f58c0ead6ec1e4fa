//! Unpacked pages that are likely to be asked for again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// The pages used last, up to a number of bytes. For many threads.
#[derive(Debug, Default)]
pub(super) struct PageCache(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    by_key: HashMap<usize, CachedPage>,
    bytes: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct CachedPage {
    content: Bytes,
    used: u64,
}

impl PageCache {
    const LIMIT: usize = 64 << 20;

    pub(super) fn get(&self, key: usize) -> Option<Bytes> {
        let mut pages = self.lock();
        pages.clock += 1;
        let used = pages.clock;
        let page = pages.by_key.get_mut(&key)?;
        page.used = used;
        Some(page.content.clone())
    }

    /// Keeps a page in the place of those that were not used for longest.
    pub(super) fn insert(&self, key: usize, content: Bytes) -> Bytes {
        let mut pages = self.lock();
        pages.clock += 1;
        pages.bytes += content.len();
        let page = CachedPage { content: content.clone(), used: pages.clock };
        if let Some(replaced) = pages.by_key.insert(key, page) {
            pages.bytes -= replaced.content.len();
        }
        // The last page stays, however large: its neighbours may be next.
        while pages.bytes > Self::LIMIT && pages.by_key.len() > 1 {
            let oldest = pages.by_key.iter().min_by_key(|(_, page)| page.used).map(|(&key, _)| key);
            let Some(removed) = oldest.and_then(|key| pages.by_key.remove(&key)) else { break };
            pages.bytes -= removed.content.len();
        }
        content
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_was_not_used_for_longest_makes_room() {
        let cache = PageCache::default();
        let third = Bytes::from(vec![0; PageCache::LIMIT / 3]);
        for key in 0..3 {
            cache.insert(key, third.clone());
        }
        assert!(cache.get(0).is_some());
        cache.insert(3, third);
        assert!(cache.get(1).is_none() && cache.get(0).is_some() && cache.get(3).is_some());
    }

    #[test]
    fn a_page_beyond_the_limit_stays_until_the_next_one() {
        let cache = PageCache::default();
        cache.insert(0, Bytes::from(vec![0; PageCache::LIMIT + 1]));
        assert!(cache.get(0).is_some());
        for _ in 0..2 {
            cache.insert(1, Bytes::from_static(b"ten bytes!"));
        }
        let pages = cache.lock();
        assert_eq!((pages.bytes, pages.by_key.len()), (10, 1));
    }
}
