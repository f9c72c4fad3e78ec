//! Removes what has ended, in small batches.

use jiff::{SignedDuration, Timestamp};
use tempmail_runtime::config::Limits;
use tempmail_store::{CLEANUP_BATCH, Store};

/// Removes free mailboxes that were not used for `limits.idle_mailbox_days`. Erases the passwords of removed mailboxes whose
/// address is no longer held, and deletes them, removed domains that are empty, tokens that ended a week ago, minted tokens
/// that expired, records of ended sessions, removed tenants that own nothing, changes that every process has read, events
/// without a webhook or a message, and attempts and entries of the audit trail that are too old to be listed.
pub(crate) async fn run(store: &Store, limits: &Limits, now: Timestamp) -> anyhow::Result<()> {
    let idle_since = now - SignedDuration::from_hours(24 * i64::from(limits.idle_mailbox_days));
    while store.remove_idle_mailboxes(idle_since, now, limits.address_hold_days).await? > 0 {}
    store.erase_released_passwords(now).await?;
    let full_batch = CLEANUP_BATCH.unsigned_abs();
    while store.delete_released_mailboxes(now).await? == full_batch {}
    store.delete_removed_domains().await?;
    store.delete_ended_tokens(now).await?;
    store.delete_expired_minted_tokens(now).await?;
    store.delete_ended_sessions(now).await?;
    store.delete_removed_tenants().await?;
    store.delete_old_changes().await?;
    store.delete_stale_events(now).await?;
    store.drop_delivery_partitions(now).await?;
    store.drop_audit_partitions().await?;
    Ok(())
}
