//! Decoded pages that are likely to be asked for again.

use std::collections::HashMap;
use std::sync::Arc;

use super::page::Values;

/// Row group and page.
type Key = (usize, usize);

/// The pages used last, up to a number of bytes.
#[derive(Debug, Default)]
pub(super) struct PageCache {
    pages: HashMap<Key, CachedPage>,
    bytes: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct CachedPage {
    values: Arc<Values>,
    bytes: usize,
    used: u64,
}

impl PageCache {
    const LIMIT: usize = 64 << 20;

    pub(super) fn get(&mut self, key: Key) -> Option<Arc<Values>> {
        self.clock += 1;
        let page = self.pages.get_mut(&key)?;
        page.used = self.clock;
        Some(page.values.clone())
    }

    /// Keeps a page in the place of those that were not used for longest. `bytes` is the memory behind
    /// the values.
    pub(super) fn insert(&mut self, key: Key, values: Values, bytes: usize) -> Arc<Values> {
        self.clock += 1;
        let values = Arc::new(values);
        let page = CachedPage { values: values.clone(), bytes, used: self.clock };
        self.bytes += bytes;
        if let Some(replaced) = self.pages.insert(key, page) {
            self.bytes -= replaced.bytes;
        }
        // The last page stays, however large: its neighbours may be next.
        while self.bytes > Self::LIMIT && self.pages.len() > 1 {
            let oldest = self.pages.iter().min_by_key(|(_, page)| page.used).map(|(&key, _)| key);
            let Some(removed) = oldest.and_then(|key| self.pages.remove(&key)) else { break };
            self.bytes -= removed.bytes;
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_was_not_used_for_longest_makes_room() {
        let mut cache = PageCache::default();
        for page in 0..3 {
            cache.insert((0, page), Vec::new(), PageCache::LIMIT / 3);
        }
        assert!(cache.get((0, 0)).is_some());
        cache.insert((0, 3), Vec::new(), PageCache::LIMIT / 3);
        assert!(cache.get((0, 1)).is_none() && cache.get((0, 0)).is_some() && cache.get((0, 3)).is_some());
    }

    #[test]
    fn a_page_beyond_the_limit_stays_until_the_next_one() {
        let mut cache = PageCache::default();
        cache.insert((0, 0), vec![None], PageCache::LIMIT + 1);
        assert_eq!(cache.get((0, 0)).unwrap().len(), 1);
        for _ in 0..2 {
            cache.insert((0, 1), Vec::new(), 10);
        }
        assert_eq!((cache.bytes, cache.pages.len()), (10, 1));
    }
}
