//! Partitions: made before mail needs them, detached and dropped when their mail has expired.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{PartitionRange, USAGE_BATCH};

use crate::Worker;

/// Partitions of a class are there for at least this long ahead,
const AHEAD: SignedDuration = SignedDuration::from_mins(15);
/// and at least so many after the current one.
const PARTITIONS_AHEAD: i32 = 2;

/// Tries to detach one partition within a pass; the next pass tries again.
const DETACH_TRIES: u32 = 100;
/// Detached partitions whose tables are dropped together: bounds the locks of one transaction.
const DROP_EVERY: usize = 16;

impl Worker {
    /// Makes the partitions of every live class for now and some time ahead, and the partitions for
    /// attempts at delivery of today and tomorrow.
    pub(crate) async fn create_partitions_ahead(&self) -> anyhow::Result<()> {
        let now = self.clock.now();
        let mut classes = self.store.list_active_classes().await?;
        if !classes.contains(&self.config.retention.free_hours) {
            classes.push(self.config.retention.free_hours);
        }
        let wanted: Vec<PartitionRange> =
            classes.into_iter().flat_map(|class| partitions_from(class, now)).collect();
        for partition in self.store.list_missing_partitions(&wanted).await? {
            self.store.ensure_message_partition(partition.class, partition.starts).await?;
        }
        for ahead in 0..=1 {
            self.store.ensure_delivery_partition(now + SignedDuration::from_hours(24 * ahead)).await?;
        }
        #[expect(clippy::cast_precision_loss, reason = "a gauge of some hundreds")]
        metrics::gauge!("tempmail_message_partitions").set(self.store.count_partitions().await? as f64);
        Ok(())
    }

    /// Detaches the partitions whose mail has expired and drops their tables.
    ///
    /// A partition that is in use at every try is left for the next pass.
    pub(crate) async fn drop_expired_partitions(&self) -> anyhow::Result<()> {
        let expired = self.store.list_expired_partitions(self.clock.now()).await?;
        for group in expired.chunks(DROP_EVERY) {
            for partition in group {
                if !self.detach(*partition).await? {
                    let starts = partition.starts;
                    tracing::warn!(class = partition.class.hours(), %starts, "an expired partition is in use: later again");
                }
            }
            self.store.drop_detached_partitions().await?;
        }
        if expired.is_empty() {
            // What a worker that was killed between the two left behind.
            self.store.drop_detached_partitions().await?;
        }
        Ok(())
    }

    /// Whether the partition is detached now. Between tries mail flows for longer than it waited.
    async fn detach(&self, partition: PartitionRange) -> anyhow::Result<bool> {
        // Before, not with it: while the partition is being detached all mail waits.
        while self.store.delete_expired_usage(partition).await? == USAGE_BATCH {}
        for attempt in 1..=DETACH_TRIES {
            if self.store.detach_message_partition(partition).await? {
                return Ok(true);
            }
            tokio::time::sleep(Duration::from_millis(20) * attempt.min(10)).await;
        }
        Ok(false)
    }
}

/// The partition of `now` and those after it that should be there.
fn partitions_from(class: RetentionClass, now: Timestamp) -> Vec<PartitionRange> {
    let width = class.partition_width();
    let first = now.as_second().div_euclid(width.as_secs()) * width.as_secs();
    let current = Timestamp::from_second(first).unwrap_or(now);
    let covered = |partition: &PartitionRange, number: i32| {
        number <= PARTITIONS_AHEAD || partition.starts <= now + AHEAD
    };
    (0..)
        .map(|number| (number, PartitionRange { class, starts: current + width * number }))
        .take_while(|(number, partition)| covered(partition, *number))
        .map(|(_, partition)| partition)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(class: i16, now: &str) -> Vec<String> {
        let class = RetentionClass::try_from(class).unwrap();
        partitions_from(class, now.parse().unwrap())
            .iter()
            .map(|partition| partition.starts.to_string())
            .collect()
    }

    #[test]
    fn an_hour_needs_15_minutes_ahead() {
        let expected = ["10:00:00", "10:05:00", "10:10:00", "10:15:00"].map(|at| format!("2026-11-21T{at}Z"));
        assert_eq!(starts(1, "2026-11-21T10:04:59Z"), expected);
        assert_eq!(starts(1, "2026-11-21T10:00:00Z"), expected);
    }

    #[test]
    fn a_long_retention_needs_two_partitions_ahead() {
        let expected = ["00:00:00", "02:00:00", "04:00:00"].map(|at| format!("2026-11-21T{at}Z"));
        assert_eq!(starts(72, "2026-11-21T01:59:59.999Z"), expected);
    }

    #[test]
    fn what_the_class_says_reaches_15_minutes_ahead() {
        for class in RetentionClass::ALL {
            let now: Timestamp = "2026-11-21T10:04:59Z".parse().unwrap();
            let partitions = partitions_from(class, now);
            assert!(partitions.len() > 2, "{class:?}");
            assert!(partitions[0].starts <= now);
            assert!(
                partitions[partitions.len() - 1].starts + class.partition_width() > now + AHEAD,
                "{class:?}"
            );
        }
    }
}
