//! Bounds what each client or tenant has at once: WebSockets that are not authenticated, checks of domains.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// The permits that are held, by key. Keys without one use no memory.
pub(crate) struct KeyPermits<K> {
    max: usize,
    held: Arc<Mutex<HashMap<K, usize>>>,
}

/// A permit of a key; released when dropped.
pub(crate) struct KeyPermit<K: Copy + Eq + Hash> {
    held: Arc<Mutex<HashMap<K, usize>>>,
    key: K,
}

impl<K: Copy + Eq + Hash> KeyPermits<K> {
    /// Each key may have `max` of them.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, held: Arc::default() }
    }

    /// One more permit for a key; `None` where it has as many as it may.
    pub(crate) fn acquire(&self, key: K) -> Option<KeyPermit<K>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(key).or_insert(0);
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(KeyPermit { held: Arc::clone(&self.held), key })
    }
}

impl<K: Copy + Eq + Hash> Drop for KeyPermit<K> {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = held.entry(self.key) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_the_permits_of_each_key_and_releases_them_on_drop() {
        let permits = KeyPermits::new(2);
        let held = [permits.acquire("one"), permits.acquire("one")];
        assert!(held.iter().all(Option::is_some));
        assert!(permits.acquire("one").is_none());
        assert!(permits.acquire("other").is_some());
        drop(held);
        assert!(permits.held.lock().unwrap().is_empty());
    }
}
