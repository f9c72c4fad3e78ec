//! The bound of a single shared inbox (`limits.inbox_bytes`). A sum per address in Postgres would
//! cost every mail a random write, so the process estimates: a table of counters, into which
//! addresses are hashed, shows which inboxes are certainly far from their bound. For the others the
//! usage is read from the store, at most every few seconds, and what is accepted meanwhile is added.
//! Mail of other ingest processes counts with that delay.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{Store, StoreError};
use uuid::Uuid;

const COUNTERS: usize = 1 << 16;
/// How long a usage that was read is valid.
const USAGE_TTL: SignedDuration = SignedDuration::from_secs(5);
/// Maximum inboxes whose usage is kept; beyond it all are read again.
const USAGES_MAX: usize = 10_000;

/// Limits the mail in each shared inbox.
#[derive(Debug)]
pub(super) struct SharedInboxCapacity {
    limit: u64,
    retention: RetentionClass,
    store: Store,
    usage: Mutex<UsageEstimate>,
}

#[derive(Debug)]
struct UsageEstimate {
    /// Bytes by hashed address since `started`.
    current: Vec<u64>,
    /// The same of the retention time before.
    previous: Vec<u64>,
    started: Option<Timestamp>,
    /// Exact usage of inboxes that may be near their bound.
    exact: HashMap<Uuid, InboxUsage>,
}

#[derive(Debug, Clone, Copy)]
struct InboxUsage {
    bytes: u64,
    read_at: Timestamp,
}

impl SharedInboxCapacity {
    pub(super) fn new(limit: u64, retention: RetentionClass, store: Store) -> Self {
        let usage = UsageEstimate {
            current: vec![0; COUNTERS],
            previous: vec![0; COUNTERS],
            started: None,
            exact: HashMap::new(),
        };
        Self { limit, retention, store, usage: Mutex::new(usage) }
    }

    /// Counts a message of `size` bytes if it fits into the inbox; `false` if it does not. Mail of a
    /// mailbox is counted as well, which only means that the store is queried earlier.
    pub(super) async fn reserve(&self, inbox: Uuid, size: i32, now: Timestamp) -> Result<bool, StoreError> {
        let size = u64::from(size.unsigned_abs());
        if let Some(fits) = self.try_reserve(inbox, size, now) {
            return Ok(fits);
        }
        let used = self.store.shared_inbox_usage(inbox, now).await?;
        self.insert_usage(inbox, used, now);
        Ok(self.try_reserve(inbox, size, now).unwrap_or(used + size <= self.limit))
    }

    /// `None` if the usage must be read from the store.
    fn try_reserve(&self, inbox: Uuid, size: u64, now: Timestamp) -> Option<bool> {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.rotate(self.retention, now);
        let counter = counter_of(inbox);
        let estimate = usage.current[counter] + usage.previous[counter] + size;
        if estimate > self.limit / 8 {
            let exact = usage.exact.get_mut(&inbox).filter(|exact| exact.is_valid(now))?;
            if exact.bytes + size > self.limit {
                return Some(false);
            }
            exact.bytes += size;
        }
        usage.current[counter] += size;
        Some(true)
    }

    fn insert_usage(&self, inbox: Uuid, read: u64, now: Timestamp) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        if usage.exact.len() >= USAGES_MAX {
            usage.exact.clear();
        }
        // What was accepted during the query may be missing in its result.
        let known = usage.exact.get(&inbox).filter(|exact| exact.is_valid(now)).map(|exact| exact.bytes);
        let bytes = known.map_or(read, |known| read.max(known));
        usage.exact.insert(inbox, InboxUsage { bytes, read_at: now });
    }
}

impl InboxUsage {
    fn is_valid(self, now: Timestamp) -> bool {
        now.duration_since(self.read_at) < USAGE_TTL
    }
}

impl UsageEstimate {
    /// Starts new counters when the current ones have covered a retention time.
    fn rotate(&mut self, retention: RetentionClass, now: Timestamp) {
        let started = *self.started.get_or_insert(now);
        if now.duration_since(started) > retention.duration() {
            std::mem::swap(&mut self.current, &mut self.previous);
            self.current.fill(0);
            self.started = Some(now);
        }
    }
}

/// The counter of an inbox. Keys are hashes already, so two of their bytes select it.
fn counter_of(inbox: Uuid) -> usize {
    let bytes = inbox.as_bytes();
    usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))
}
