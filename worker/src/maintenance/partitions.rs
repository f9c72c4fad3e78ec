//! Partitions: created before mail needs them, detached and dropped when their mail has expired.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{PartitionRange, Store, USAGE_BATCH};

/// How far ahead of the clock partitions of a class exist, at least.
const TIME_AHEAD: SignedDuration = SignedDuration::from_mins(15);
/// Partitions of a class that exist after the current one, at least.
const PARTITIONS_AHEAD: i32 = 2;

/// Tries to detach one partition within a pass.
const DETACH_TRIES: u32 = 100;
/// Partitions whose tables are dropped together; bounds the locks of one transaction.
const DROP_BATCH: usize = 16;

/// Creates the partitions of every live class, and of `free_class`, for `now` and some time ahead; and those
/// for attempts at delivery of today and tomorrow.
pub(crate) async fn create_ahead(
    store: &Store,
    free_class: RetentionClass,
    now: Timestamp,
) -> anyhow::Result<()> {
    let mut classes = store.list_active_classes().await?;
    if !classes.contains(&free_class) {
        classes.push(free_class);
    }
    let needed: Vec<PartitionRange> =
        classes.into_iter().flat_map(|class| needed_partitions(class, now)).collect();
    for partition in store.list_missing_partitions(&needed).await? {
        store.ensure_message_partition(partition.class, partition.starts).await?;
    }
    for days in 0..=1 {
        store.ensure_delivery_partition(now + SignedDuration::from_hours(24 * days)).await?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a gauge of some hundreds")]
    metrics::gauge!("tempmail_message_partitions").set(store.count_partitions().await? as f64);
    Ok(())
}

/// Detaches the partitions whose mail has expired and drops their tables. A partition that is in use at every
/// try is left to the next pass.
pub(crate) async fn drop_expired(store: &Store, now: Timestamp) -> anyhow::Result<()> {
    let expired = store.list_expired_partitions(now).await?;
    for group in expired.chunks(DROP_BATCH) {
        for &partition in group {
            if !detach(store, partition).await? {
                tracing::warn!(
                    class = partition.class.hours(),
                    starts = %partition.starts,
                    "an expired partition is in use: the next pass tries again"
                );
            }
        }
        store.drop_detached_partitions().await?;
    }
    if expired.is_empty() {
        // A worker that was killed may have left detached partitions behind.
        store.drop_detached_partitions().await?;
    }
    Ok(())
}

/// Whether the partition is detached now. The pauses between tries leave more time to incoming mail than the
/// tries take.
async fn detach(store: &Store, partition: PartitionRange) -> anyhow::Result<bool> {
    // Before detaching, not with it: all mail waits while a partition is detached.
    while store.delete_expired_usage(partition).await? == USAGE_BATCH {}
    for attempt in 1..=DETACH_TRIES {
        if store.detach_message_partition(partition).await? {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(20) * attempt.min(10)).await;
    }
    Ok(false)
}

/// The partition of `now` and those after it that should exist.
fn needed_partitions(class: RetentionClass, now: Timestamp) -> Vec<PartitionRange> {
    let width = class.partition_width();
    let first = now.as_second().div_euclid(width.as_secs()) * width.as_secs();
    let current = Timestamp::from_second(first).unwrap_or(now);
    let covered = |partition: &PartitionRange, number: i32| {
        number <= PARTITIONS_AHEAD || partition.starts <= now + TIME_AHEAD
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
        needed_partitions(class, now.parse().unwrap())
            .iter()
            .map(|partition| partition.starts.to_string())
            .collect()
    }

    #[test]
    fn covers_15_minutes_ahead_for_a_retention_of_an_hour() {
        let expected = ["10:00:00", "10:05:00", "10:10:00", "10:15:00"].map(|at| format!("2026-11-21T{at}Z"));
        assert_eq!(starts(1, "2026-11-21T10:04:59Z"), expected);
        assert_eq!(starts(1, "2026-11-21T10:00:00Z"), expected);
    }

    #[test]
    fn covers_two_partitions_ahead_for_a_long_retention() {
        let expected = ["00:00:00", "02:00:00", "04:00:00"].map(|at| format!("2026-11-21T{at}Z"));
        assert_eq!(starts(72, "2026-11-21T01:59:59.999Z"), expected);
    }

    #[test]
    fn covers_15_minutes_ahead_for_every_class() {
        for class in RetentionClass::ALL {
            let now: Timestamp = "2026-11-21T10:04:59Z".parse().unwrap();
            let partitions = needed_partitions(class, now);
            assert!(partitions.len() > 2, "{class:?}");
            assert!(partitions[0].starts <= now);
            assert!(
                partitions[partitions.len() - 1].starts + class.partition_width() > now + TIME_AHEAD,
                "{class:?}"
            );
        }
    }
}
