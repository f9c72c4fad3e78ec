//! One timer for all who wait: what is due is looked up ten times a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::signal::{Signal, Wake};

/// Time between two looks: how late a waiter may be woken.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// How long the waiters of a draining process are told to leave, so that they do not all come to
/// another one at once.
const DRAIN_SPREAD: Duration = Duration::from_secs(8);
/// Waiters that are told at once, however few ticks that takes.
const DRAIN_AT_ONCE: usize = 100;

/// Who is to be woken when; entries are by waiter.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeMap<(Instant, u64), Arc<Signal>>,
    /// By business time: when what a waiter rests on expires.
    expiring: BTreeMap<(Timestamp, u64), Arc<Signal>>,
}

impl Timers {
    pub(super) fn set(&mut self, at: Instant, number: u64, signal: &Arc<Signal>) {
        self.due.insert((at, number), Arc::clone(signal));
    }

    pub(super) fn clear(&mut self, at: Instant, number: u64) {
        self.due.remove(&(at, number));
    }

    pub(super) fn expire(&mut self, at: Timestamp, number: u64, signal: &Arc<Signal>) {
        self.expiring.insert((at, number), Arc::clone(signal));
    }

    pub(super) fn forget_expiry(&mut self, at: Timestamp, number: u64) {
        self.expiring.remove(&(at, number));
    }

    /// Wakes those whose time has come.
    pub(super) fn ring(&mut self, now: Instant, business: Timestamp) {
        let later = self.due.split_off(&(now + Duration::from_nanos(1), 0));
        for signal in std::mem::replace(&mut self.due, later).into_values() {
            signal.wake(Wake::Due);
        }
        while let Some(entry) = self.expiring.first_entry()
            && entry.key().0 <= business
        {
            entry.remove().wake(Wake::Recheck);
        }
    }
}

/// How many of `waiting` to tell in this tick of a drain.
pub(super) fn drained_per_tick(waiting: usize) -> usize {
    let ticks = usize::try_from(DRAIN_SPREAD.as_millis() / TICK.as_millis()).unwrap_or(usize::MAX);
    waiting.div_ceil(ticks).max(DRAIN_AT_ONCE)
}
