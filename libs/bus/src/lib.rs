//! What the roles tell each other: arrivals, wait slots and rate limits, in one process.
//!
//! Nothing here is the truth: losing an arrival costs latency (readers repair from the
//! store), losing slots or rates costs fairness for a moment. So a bus between processes can
//! take this one's place behind the same functions.

mod rate;
mod slots;

use std::sync::Arc;

use tempmail_model::message::Arrival;
use tokio::sync::broadcast;

pub use rate::{RateDecision, RateLimits};
pub use slots::{Slot, SlotKey};

use slots::Slots;

/// Batches a subscriber may be behind before it loses the oldest and has to repair.
const ARRIVALS_BEHIND: usize = 1024;

/// The bus of this process. Cheap to clone; clones are one bus.
#[derive(Debug, Clone)]
pub struct Bus {
    arrivals: broadcast::Sender<Arc<[Arrival]>>,
    slots: Slots,
}

impl Bus {
    /// A bus that nobody else knows.
    pub fn new() -> Self {
        Self { arrivals: broadcast::Sender::new(ARRIVALS_BEHIND), slots: Slots::default() }
    }

    /// Tells every subscriber of messages that are committed. Never waits and never fails: a
    /// hint that is lost is found by the readers' own look at the stream.
    ///
    /// An arrival with `seq` 0 is no message: it only wakes those who wait on its `inbox` or
    /// `owner`, so that they look again at what they may read.
    pub fn publish(&self, arrivals: Vec<Arrival>) {
        if !arrivals.is_empty() {
            // No subscriber is no error: a process may have no readers.
            let _ = self.arrivals.send(arrivals.into());
        }
    }

    /// All that is published from now on. A receiver that falls 1,024 batches behind is told
    /// so (`RecvError::Lagged`) and has to repair from the store.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<[Arrival]>> {
        self.arrivals.subscribe()
    }

    /// Takes one of `max` places under `key`; `None` where all are taken. The place is given
    /// back when the [`Slot`] is dropped.
    pub fn try_take(&self, key: SlotKey, max: usize) -> Option<Slot> {
        self.slots.try_take(key, max)
    }
}

impl Default for Bus {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast::error::RecvError;
    use uuid::Uuid;

    use super::*;

    fn arrival(seq: i64) -> Arrival {
        Arrival { seq, owner: Uuid::nil(), inbox: Uuid::from_u128(1) }
    }

    #[tokio::test]
    async fn every_subscriber_hears_of_every_arrival() {
        let bus = Bus::new();
        bus.publish(vec![arrival(1)]);
        let (mut a, mut b) = (bus.subscribe(), bus.clone().subscribe());
        bus.publish(vec![]);
        bus.publish(vec![arrival(2), arrival(3)]);
        for receiver in [&mut a, &mut b] {
            assert_eq!(*receiver.recv().await.unwrap(), [arrival(2), arrival(3)]);
        }
    }

    #[tokio::test]
    async fn a_subscriber_that_falls_behind_is_told() {
        let bus = Bus::new();
        let mut receiver = bus.subscribe();
        for seq in 1..=5_000 {
            bus.publish(vec![arrival(seq)]);
        }
        assert!(matches!(receiver.recv().await, Err(RecvError::Lagged(_))));
        assert!(receiver.recv().await.is_ok());
    }
}
