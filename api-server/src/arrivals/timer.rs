//! One timer for all subscribers: what is due is fired ten times a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::signal::{Notification, Signal};

/// Time between two ticks: how late a subscriber may be notified.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// Over how long the subscribers of a draining process are notified, so that their clients do not all
/// connect to another process at once.
const DRAIN_SPREAD: Duration = Duration::from_secs(8);
/// Subscribers that are notified of the drain per tick, at least.
const DRAIN_BATCH_MIN: usize = 100;

/// When to notify which subscribers; entries are by the subscriber's number.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeMap<(Instant, u64), Arc<Signal>>,
    /// By business time: when the right to read expires.
    expiring: BTreeMap<(Timestamp, u64), Arc<Signal>>,
}

impl Timers {
    pub(super) fn schedule(&mut self, at: Instant, number: u64, signal: &Arc<Signal>) {
        self.due.insert((at, number), Arc::clone(signal));
    }

    pub(super) fn cancel(&mut self, at: Instant, number: u64) {
        self.due.remove(&(at, number));
    }

    pub(super) fn schedule_expiry(&mut self, at: Timestamp, number: u64, signal: &Arc<Signal>) {
        self.expiring.insert((at, number), Arc::clone(signal));
    }

    pub(super) fn cancel_expiry(&mut self, at: Timestamp, number: u64) {
        self.expiring.remove(&(at, number));
    }

    /// Notifies the subscribers whose time has come.
    pub(super) fn fire_due(&mut self, now: Instant, business: Timestamp) {
        let later = self.due.split_off(&(now + Duration::from_nanos(1), 0));
        for signal in std::mem::replace(&mut self.due, later).into_values() {
            signal.notify(Notification::Due);
        }
        while let Some(entry) = self.expiring.first_entry()
            && entry.key().0 <= business
        {
            entry.remove().notify(Notification::Recheck);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.expiring.is_empty()
    }
}

/// How many of `subscribers` to notify per tick of a drain.
pub(super) fn drain_batch(subscribers: usize) -> usize {
    let ticks = usize::try_from(DRAIN_SPREAD.as_millis() / TICK.as_millis()).unwrap_or(usize::MAX);
    subscribers.div_ceil(ticks).max(DRAIN_BATCH_MIN)
}
