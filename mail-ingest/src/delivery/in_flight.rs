//! Counts mail transactions that began lately, whose mail the batcher may wait for. One that takes longer is waited for
//! by nobody: its sender is slow, or keeps it open.

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::{Duration, Instant};

/// Transactions are counted by the slot of time in which they began. They count for one to two of these.
const SLOT: Duration = Duration::from_millis(25);
/// Slots that are kept: that of now, the one before, and as many for threads that read the clock a little earlier.
const SLOTS: usize = 4;
/// Bits of a counter that count; the others are the number of its slot, so that none needs to be cleared.
const COUNT_BITS: u32 = 24;

/// The counts of a process. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct InFlight(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    started: Instant,
    slots: [AtomicU64; SLOTS],
}

/// Counts one transaction until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    counters: Arc<Counters>,
    slot: u64,
}

impl InFlight {
    /// None so far.
    pub(super) fn new() -> Self {
        Self(Arc::new(Counters { started: Instant::now(), slots: array::from_fn(|_| AtomicU64::new(0)) }))
    }

    /// Open transactions that began within 25 to 50 ms, including those whose mail is queued.
    pub(super) fn count(&self) -> usize {
        let slot = self.0.slot_now();
        let count = self.0.count(slot) + slot.checked_sub(1).map_or(0, |before| self.0.count(before));
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    pub(super) fn begin(&self) -> InFlightGuard {
        let slot = self.0.slot_now();
        self.0.update(slot, |value| {
            Some(if value >> COUNT_BITS == slot { value + 1 } else { (slot << COUNT_BITS) + 1 })
        });
        InFlightGuard { counters: Arc::clone(&self.0), slot }
    }
}

impl Counters {
    /// The number of the slot of now.
    fn slot_now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis() / SLOT.as_millis()).unwrap_or(u64::MAX)
    }

    fn counter(&self, slot: u64) -> &AtomicU64 {
        &self.slots[usize::try_from(slot).unwrap_or_default() % SLOTS]
    }

    /// Transactions that began in a slot and are open; 0 if the slot was replaced by a later one.
    fn count(&self, slot: u64) -> u64 {
        let value = self.counter(slot).load(Ordering::Relaxed);
        if value >> COUNT_BITS == slot { value & ((1 << COUNT_BITS) - 1) } else { 0 }
    }

    fn update(&self, slot: u64, change: impl FnMut(u64) -> Option<u64>) {
        let _ = self.counter(slot).fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let slot = self.slot;
        // A slot that was replaced counts no longer.
        self.counters.update(slot, |value| (value >> COUNT_BITS == slot).then(|| value - 1));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn counts_open_transactions() {
        let in_flight = InFlight::new();
        let (first, second) = (in_flight.begin(), in_flight.begin());
        assert_eq!(in_flight.count(), 2);
        drop(first);
        assert_eq!(in_flight.count(), 1);
        drop(second);
        assert_eq!(in_flight.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn counts_a_transaction_for_one_to_two_slots() {
        let in_flight = InFlight::new();
        let slow = in_flight.begin();
        advance(SLOT).await;
        let quick = in_flight.begin();
        assert_eq!(in_flight.count(), 2);
        advance(SLOT).await;
        assert_eq!(in_flight.count(), 1);
        drop(quick);
        assert_eq!(in_flight.count(), 0);
        drop(slow);
        assert_eq!(in_flight.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_transaction_is_not_subtracted_from_a_slot_that_replaced_its_own() {
        let in_flight = InFlight::new();
        let old = in_flight.begin();
        advance(SLOT * u32::try_from(SLOTS).unwrap()).await;
        let new = in_flight.begin();
        drop(old);
        assert_eq!(in_flight.count(), 1);
        drop(new);
        assert_eq!(in_flight.count(), 0);
    }
}
