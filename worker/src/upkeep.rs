//! Things that end by themselves.

use jiff::SignedDuration;
use tempmail_store::CLEANUP_BATCH;

use crate::Worker;

impl Worker {
    /// Removes free mailboxes that nobody used for `limits.idle_mailbox_days`, forgets
    /// removed ones whose hold is over and removed domains that are empty, deletes tokens that
    /// ended a week ago, and forgets tenants of which nothing is left, changes that everybody has
    /// seen, events that no webhook is to be told of any more, and attempts at delivery that are
    /// listed no more.
    pub(crate) async fn tidy_up(&self) -> anyhow::Result<()> {
        let limits = &self.config.limits;
        let now = self.clock.now();
        let idle_since = now - SignedDuration::from_hours(24 * i64::from(limits.idle_mailbox_days));
        while self.store.remove_idle_mailboxes(idle_since, now, limits.address_hold_days).await? > 0 {}
        let full = CLEANUP_BATCH.unsigned_abs();
        while self.store.delete_released_mailboxes(now).await? == full {}
        self.store.delete_removed_domains().await?;
        self.store.delete_ended_tokens(now).await?;
        self.store.delete_removed_tenants().await?;
        self.store.delete_old_changes().await?;
        self.store.delete_stale_events(now).await?;
        self.store.drop_delivery_partitions(now).await?;
        Ok(())
    }
}
