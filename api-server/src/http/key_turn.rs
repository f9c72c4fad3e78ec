//! Turns at what each tenant or owner may do a few of at once: further requests of the same one wait, and hold up no other.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns of one process, by key. Keys that have or await none use no memory.
pub(crate) struct KeyTurns<K> {
    max: usize,
    queues: Arc<Queues<K>>,
}

/// Keys that have turns or wait for them.
type Queues<K> = Mutex<HashMap<K, Arc<Semaphore>>>;

/// A turn of a key; over when dropped.
pub(crate) struct KeyTurn<K: Copy + Eq + Hash> {
    // Dropped in this order: the queue is forgotten where nothing else has it.
    _permit: Option<OwnedSemaphorePermit>,
    _queue: KeyQueue<K>,
}

/// The queue of a key, which is forgotten with the last turn.
struct KeyQueue<K: Copy + Eq + Hash> {
    queues: Arc<Queues<K>>,
    key: K,
    turns: Option<Arc<Semaphore>>,
}

impl<K: Copy + Eq + Hash> KeyTurns<K> {
    /// Each key has `max` at a time.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, queues: Arc::default() }
    }

    /// Waits for a turn of a key, first come first served.
    pub(crate) async fn acquire(&self, key: K) -> KeyTurn<K> {
        let turns = {
            let mut queues = lock(&self.queues);
            Arc::clone(queues.entry(key).or_insert_with(|| Arc::new(Semaphore::new(self.max))))
        };
        let queue = KeyQueue { queues: Arc::clone(&self.queues), key, turns: Some(Arc::clone(&turns)) };
        // Semaphores are never closed.
        KeyTurn { _permit: turns.acquire_owned().await.ok(), _queue: queue }
    }
}

impl<K: Copy + Eq + Hash> Drop for KeyQueue<K> {
    fn drop(&mut self) {
        let mut queues = lock(&self.queues);
        self.turns = None;
        if queues.get(&self.key).is_some_and(|turns| Arc::strong_count(turns) == 1) {
            queues.remove(&self.key);
        }
    }
}

fn lock<K>(queues: &Queues<K>) -> MutexGuard<'_, HashMap<K, Arc<Semaphore>>> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_has_its_turns_and_holds_up_no_other() {
        let turns = KeyTurns::new(2);
        let first = turns.acquire("one").await;
        let second = turns.acquire("one").await;
        let mut third = std::pin::pin!(turns.acquire("one"));
        assert!(futures_util::poll!(third.as_mut()).is_pending());
        drop(turns.acquire("other").await);
        drop(first);
        assert!(futures_util::poll!(third.as_mut()).is_ready());
        drop(second);
    }

    #[tokio::test]
    async fn forgets_keys_whose_turns_are_over_or_were_given_up() {
        let turns = KeyTurns::new(2);
        let held = [turns.acquire("one").await, turns.acquire("one").await];
        let mut given_up = Box::pin(turns.acquire("one"));
        assert!(futures_util::poll!(given_up.as_mut()).is_pending());
        drop(held);
        drop(given_up);
        assert!(lock(&turns.queues).is_empty());
    }
}
