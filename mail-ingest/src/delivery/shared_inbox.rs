//! The bound of a single shared inbox (`limits.inbox_bytes`). A row of sums for every address
//! would cost every mail a random write, so the process estimates: a small table of counters,
//! addresses hashed into it, tells which inboxes can't possibly be near their bound. For the
//! others the store is asked, at most every few seconds, and what comes meanwhile is added.
//! Other ingest processes are seen with that lag.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{Store, StoreError};
use uuid::Uuid;

const COUNTERS: usize = 1 << 16;
/// A store's answer is taken as true for so long.
const FRESH: SignedDuration = SignedDuration::from_secs(5);
/// Inboxes that are watched exactly at most; beyond it all are asked for anew.
const WATCHED: usize = 10_000;

#[derive(Debug)]
pub(super) struct SharedInboxRoom {
    limit: u64,
    retention: RetentionClass,
    store: Store,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Octets by hashed address since `since`, and in the retention time before that.
    current: Vec<u64>,
    former: Vec<u64>,
    since: Option<Timestamp>,
    watched: HashMap<Uuid, Watched>,
}

#[derive(Debug, Clone, Copy)]
struct Watched {
    used: u64,
    at: Timestamp,
}

impl SharedInboxRoom {
    pub(super) fn new(limit: u64, retention: RetentionClass, store: Store) -> Self {
        let state = State {
            current: vec![0; COUNTERS],
            former: vec![0; COUNTERS],
            since: None,
            watched: HashMap::new(),
        };
        Self { limit, retention, store, state: Mutex::new(state) }
    }

    /// Whether a message of `size` octets fits into the inbox, and counts it if so. Mail that
    /// turns out to belong to a mailbox was counted for nothing, which only means that the
    /// store is asked earlier.
    pub(super) async fn fits(&self, inbox: Uuid, size: i32, now: Timestamp) -> Result<bool, StoreError> {
        let size = u64::from(size.unsigned_abs());
        if let Some(fits) = self.judge(inbox, size, now) {
            return Ok(fits);
        }
        let used = self.store.shared_inbox_usage(inbox, now).await?;
        self.watch(inbox, used, now);
        Ok(self.judge(inbox, size, now).unwrap_or(used + size <= self.limit))
    }

    /// `None`: the store must be asked.
    fn judge(&self, inbox: Uuid, size: u64, now: Timestamp) -> Option<bool> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.turn(self.retention, now);
        let slot = counter(inbox);
        let estimate = state.current[slot] + state.former[slot] + size;
        if estimate > self.limit / 8 {
            let watched =
                state.watched.get_mut(&inbox).filter(|watched| now.duration_since(watched.at) < FRESH)?;
            if watched.used + size > self.limit {
                return Some(false);
            }
            watched.used += size;
        }
        state.current[slot] += size;
        Some(true)
    }

    fn watch(&self, inbox: Uuid, used: u64, now: Timestamp) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.watched.len() >= WATCHED {
            state.watched.clear();
        }
        // What was added while the store was asked may not be in its answer.
        let known = state.watched.get(&inbox).map_or(0, |watched| watched.used);
        let fresh = state.watched.get(&inbox).is_some_and(|watched| now.duration_since(watched.at) < FRESH);
        let used = if fresh { used.max(known) } else { used };
        state.watched.insert(inbox, Watched { used, at: now });
    }
}

impl State {
    /// Starts new counters when the old ones have covered a whole retention time.
    fn turn(&mut self, retention: RetentionClass, now: Timestamp) {
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) > retention.duration() {
            std::mem::swap(&mut self.current, &mut self.former);
            self.current.fill(0);
            self.since = Some(now);
        }
    }
}

/// Keys are hashes already: two of their octets choose the counter.
fn counter(inbox: Uuid) -> usize {
    let octets = inbox.as_bytes();
    usize::from(u16::from_be_bytes([octets[0], octets[1]]))
}
