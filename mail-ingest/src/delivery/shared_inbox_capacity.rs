//! The bound of a single shared inbox (`limits.inbox_bytes`). A sum per address in Postgres would
//! cost every mail a random write, so the process estimates: a table of counters, into which
//! addresses are hashed, shows which inboxes are certainly far from their bound. For the others the
//! usage is read from the store, at most every few seconds, and what is accepted meanwhile is added.
//! Mail of other ingest processes counts with that delay.
//!
//! The same statement says whether the address is a shared inbox at all: other owners have sums of their own.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{NewMessage, Store, StoreError};
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

/// Bytes that were counted for a message that is not stored yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedInboxReservation {
    inbox: Uuid,
    size: u64,
    /// When the usage was read that they were added to.
    read_at: Option<Timestamp>,
}

#[derive(Debug)]
struct UsageEstimate {
    /// Bytes by hashed address since `started`.
    current: Vec<u64>,
    /// The same of the retention time before.
    previous: Vec<u64>,
    started: Option<Timestamp>,
    /// Usage of inboxes that may be near their bound.
    read: HashMap<Uuid, InboxUsage>,
}

#[derive(Debug, Clone, Copy)]
struct InboxUsage {
    /// `None`: it is no shared inbox.
    bytes: Option<u64>,
    read_at: Timestamp,
}

/// What the estimate says about a message.
enum Estimate {
    Fits(SharedInboxReservation),
    Full,
    /// The usage must be read from the store.
    Unknown,
}

impl SharedInboxCapacity {
    pub(super) fn new(limit: u64, retention: RetentionClass, store: Store) -> Self {
        let usage = UsageEstimate {
            current: vec![0; COUNTERS],
            previous: vec![0; COUNTERS],
            started: None,
            read: HashMap::new(),
        };
        Self { limit, retention, store, usage: Mutex::new(usage) }
    }

    /// Counts a message if it fits into its shared inbox, or has another owner; `None` if it does not fit.
    pub(super) async fn reserve(
        &self,
        message: &NewMessage,
        now: Timestamp,
    ) -> Result<Option<SharedInboxReservation>, StoreError> {
        let (inbox, size) = (message.address.inbox_key(), u64::from(message.size.unsigned_abs()));
        let mut estimate = self.try_reserve(inbox, size, now);
        if matches!(estimate, Estimate::Unknown) {
            let used = self.store.shared_inbox_usage(message, now).await?;
            estimate = self.reserve_in(inbox, size, used, now);
        }
        Ok(match estimate {
            Estimate::Fits(reservation) => Some(reservation),
            Estimate::Full | Estimate::Unknown => None,
        })
    }

    /// Gives back what was counted for a message that was not stored: nobody fills an inbox with mail that is refused.
    pub(super) fn release(&self, reservation: SharedInboxReservation) {
        let SharedInboxReservation { inbox, size, read_at } = reservation;
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = counter_of(inbox);
        usage.current[counter] = usage.current[counter].saturating_sub(size);
        if let Some(read) = usage.read.get_mut(&inbox)
            && Some(read.read_at) == read_at
        {
            read.bytes = read.bytes.map(|bytes| bytes.saturating_sub(size));
        }
    }

    fn try_reserve(&self, inbox: Uuid, size: u64, now: Timestamp) -> Estimate {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.rotate(self.retention, now);
        usage.reserve(inbox, size, self.limit, now)
    }

    /// Reserves in an inbox whose usage was just read.
    fn reserve_in(&self, inbox: Uuid, size: u64, used: Option<u64>, now: Timestamp) -> Estimate {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        if usage.read.len() >= USAGES_MAX {
            usage.read.clear();
        }
        // What was accepted during the query may be missing in its result.
        let known = usage.read.get(&inbox).filter(|known| known.is_valid(now)).and_then(|known| known.bytes);
        let bytes = used.map(|used| known.map_or(used, |known| used.max(known)));
        usage.read.insert(inbox, InboxUsage { bytes, read_at: now });
        usage.reserve(inbox, size, self.limit, now)
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

    fn reserve(&mut self, inbox: Uuid, size: u64, limit: u64, now: Timestamp) -> Estimate {
        let counter = counter_of(inbox);
        let mut read_at = None;
        if self.current[counter] + self.previous[counter] + size > limit / 8 {
            let Some(read) = self.read.get_mut(&inbox).filter(|read| read.is_valid(now)) else {
                return Estimate::Unknown;
            };
            if let Some(bytes) = &mut read.bytes {
                if *bytes + size > limit {
                    return Estimate::Full;
                }
                *bytes += size;
            }
            read_at = Some(read.read_at);
        }
        self.current[counter] += size;
        Estimate::Fits(SharedInboxReservation { inbox, size, read_at })
    }
}

/// The counter of an inbox. Keys are hashes already, so two of their bytes select it.
fn counter_of(inbox: Uuid) -> usize {
    let bytes = inbox.as_bytes();
    usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))
}
