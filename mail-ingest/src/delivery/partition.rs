//! Partitions that are missing when mail is stored.

use jiff::Timestamp;
use tempmail_store::{Store, StoreError};

/// Creates the current and the next partition of every retention class in use. The worker creates
/// partitions ahead; this is for mail that arrives while no worker runs.
pub(super) async fn create_partitions(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    for class in store.list_active_classes().await? {
        store.ensure_message_partition(class, now).await?;
        store.ensure_message_partition(class, now + class.partition_width()).await?;
    }
    Ok(())
}
