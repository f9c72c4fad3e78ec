//! A bounded set of keys that are forgotten after a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Time between two removals of expired keys from a set that is full.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// See the module. While the set is full, new keys are not remembered.
#[derive(Debug)]
pub(crate) struct ExpiringSet<K> {
    max: usize,
    keys: Mutex<Keys<K>>,
}

#[derive(Debug)]
struct Keys<K> {
    expire_at: HashMap<K, Instant>,
    swept_at: Option<Instant>,
}

impl<K: Copy + Eq + Hash> ExpiringSet<K> {
    /// Of at most `max` keys.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, keys: Mutex::new(Keys { expire_at: HashMap::new(), swept_at: None }) }
    }

    /// Remembers a key for `time`, from now on.
    pub(crate) fn insert(&self, key: K, time: Duration) {
        let now = Instant::now();
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.expire_at.len() >= self.max && keys.swept_at.is_none_or(|at| now - at >= SWEEP_INTERVAL) {
            keys.expire_at.retain(|_, expires_at| *expires_at > now);
            keys.swept_at = Some(now);
        }
        if keys.expire_at.len() < self.max || keys.expire_at.contains_key(&key) {
            keys.expire_at.insert(key, now + time);
        }
    }

    /// Whether a key is remembered.
    pub(crate) fn contains(&self, key: &K) -> bool {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.expire_at.get(key).is_some_and(|expires_at| *expires_at > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn remembers_a_bounded_number_of_keys_for_their_time() {
        let set = ExpiringSet::new(2);
        set.insert(1, Duration::from_secs(1));
        set.insert(2, Duration::from_secs(3));
        set.insert(3, Duration::from_secs(3));
        assert!(set.contains(&1) && set.contains(&2) && !set.contains(&3));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!set.contains(&1) && set.contains(&2));
        set.insert(3, Duration::from_secs(3));
        assert!(set.contains(&3));
    }
}
