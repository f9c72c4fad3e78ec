//! Slots: made before mail needs them, detached and dropped when their mail has expired.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{SlotKey, USAGE_BATCH};

use crate::Worker;

/// Slots of a class are there for at least this long ahead,
const AHEAD: SignedDuration = SignedDuration::from_mins(15);
/// and at least so many after the current one.
const SLOTS_AHEAD: i32 = 2;

/// Tries to detach one slot within a pass; the next pass tries again.
const DETACH_TRIES: u32 = 100;
/// Detached slots whose tables are dropped together: bounds the locks of one transaction.
const DROP_EVERY: usize = 16;

impl Worker {
    /// Makes the slots of every live class for now and some time ahead, and the partitions for
    /// attempts at delivery of today and tomorrow.
    pub(crate) async fn make_slots_ahead(&self) -> anyhow::Result<()> {
        let now = self.clock.now();
        let mut classes = self.store.live_classes().await?;
        if !classes.contains(&self.config.retention.free_hours) {
            classes.push(self.config.retention.free_hours);
        }
        let wanted: Vec<SlotKey> = classes.into_iter().flat_map(|class| slots_from(class, now)).collect();
        for slot in self.store.list_missing_slots(&wanted).await? {
            self.store.ensure_slot(slot.class, slot.starts).await?;
        }
        for ahead in 0..=1 {
            self.store.ensure_delivery_day(now + SignedDuration::from_hours(24 * ahead)).await?;
        }
        #[expect(clippy::cast_precision_loss, reason = "a gauge of some hundreds")]
        metrics::gauge!("tempmail_slots").set(self.store.count_slots().await? as f64);
        Ok(())
    }

    /// Detaches the slots whose mail has expired and drops their tables.
    ///
    /// A slot that is in use at every try is left for the next pass.
    pub(crate) async fn drop_expired_slots(&self) -> anyhow::Result<()> {
        let expired = self.store.list_expired_slots(self.clock.now()).await?;
        for group in expired.chunks(DROP_EVERY) {
            for slot in group {
                if !self.detach(*slot).await? {
                    let starts = slot.starts;
                    tracing::warn!(class = slot.class.hours(), %starts, "an expired slot is in use: later again");
                }
            }
            self.store.drop_detached_slots().await?;
        }
        if expired.is_empty() {
            // What a worker that was killed between the two left behind.
            self.store.drop_detached_slots().await?;
        }
        Ok(())
    }

    /// Whether the slot is detached now. Between tries mail flows for longer than it waited.
    async fn detach(&self, slot: SlotKey) -> anyhow::Result<bool> {
        // Before, not with it: while the slot is being detached all mail waits.
        while self.store.forget_usage(slot).await? == USAGE_BATCH {}
        for attempt in 1..=DETACH_TRIES {
            if self.store.detach_slot(slot).await? {
                return Ok(true);
            }
            tokio::time::sleep(Duration::from_millis(20) * attempt.min(10)).await;
        }
        Ok(false)
    }
}

/// The slot of `now` and those after it that should be there.
fn slots_from(class: RetentionClass, now: Timestamp) -> Vec<SlotKey> {
    let width = class.slot_width();
    let first = now.as_second().div_euclid(width.as_secs()) * width.as_secs();
    let current = Timestamp::from_second(first).unwrap_or(now);
    let covered = |slot: &SlotKey, number: i32| number <= SLOTS_AHEAD || slot.starts <= now + AHEAD;
    (0..)
        .map(|number| (number, SlotKey { class, starts: current + width * number }))
        .take_while(|(number, slot)| covered(slot, *number))
        .map(|(_, slot)| slot)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(class: i16, now: &str) -> Vec<String> {
        let class = RetentionClass::try_from(class).unwrap();
        slots_from(class, now.parse().unwrap()).iter().map(|slot| slot.starts.to_string()).collect()
    }

    #[test]
    fn an_hour_needs_15_minutes_ahead() {
        let expected = ["10:00:00", "10:05:00", "10:10:00", "10:15:00"].map(|at| format!("2026-11-21T{at}Z"));
        assert_eq!(starts(1, "2026-11-21T10:04:59Z"), expected);
        assert_eq!(starts(1, "2026-11-21T10:00:00Z"), expected);
    }

    #[test]
    fn a_long_retention_needs_two_slots_ahead() {
        let expected = ["00:00:00", "02:00:00", "04:00:00"].map(|at| format!("2026-11-21T{at}Z"));
        assert_eq!(starts(72, "2026-11-21T01:59:59.999Z"), expected);
    }

    #[test]
    fn what_the_class_says_reaches_15_minutes_ahead() {
        for class in RetentionClass::ALL {
            let now: Timestamp = "2026-11-21T10:04:59Z".parse().unwrap();
            let slots = slots_from(class, now);
            assert!(slots.len() > 2, "{class:?}");
            assert!(slots[0].starts <= now);
            assert!(slots[slots.len() - 1].starts + class.slot_width() > now + AHEAD, "{class:?}");
        }
    }
}
