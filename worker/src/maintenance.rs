//! Maintenance of the database.

pub(crate) mod partitions;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempmail_model::key::MasterKey;
use tempmail_model::sealer::Reseal;
use tempmail_model::verify_token::VerifyTokenKeySealer;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::config::Limits;
use tempmail_store::{AuditEntry, CLEANUP_BATCH, ResealedWebhookSecret, Store};
use uuid::Uuid;

/// Removes free mailboxes that were not used for `limits.idle_mailbox_days`. Erases the passwords of removed
/// mailboxes whose address is no longer held, and deletes them, removed domains that are empty, tokens that ended a
/// week ago, minted tokens that expired, records of ended sessions, removed tenants that own nothing, changes that
/// every process has read, events without a webhook or a message, and attempts and entries of the audit trail that
/// are too old to be listed.
pub(crate) async fn clean_up(store: &Store, limits: &Limits, now: Timestamp) -> anyhow::Result<()> {
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

/// Pause between two batches, which leaves processor and disk to others.
const PURGE_PAUSE: Duration = Duration::from_millis(5);

/// Carries out the deletions that owners requested: their mail is invisible since then, and its rows are deleted in
/// small batches, so that incoming mail never waits long for a lock. Each pending purge has a batch in turn, so that
/// none waits for the end of a large one. One that fails does not keep the others from running.
pub(crate) async fn carry_out_purges(store: &Store) -> anyhow::Result<()> {
    let mut result = Ok(());
    let mut pending = store.list_purges().await?;
    while !pending.is_empty() {
        let mut incomplete = Vec::with_capacity(pending.len());
        for purge in pending {
            match purge_batch(store, purge).await {
                Ok(true) => incomplete.push(purge),
                Ok(false) => {}
                Err(error) => result = result.and(Err(error)),
            }
        }
        pending = incomplete;
    }
    result
}

/// Deletes one batch; whether there may be more of it.
async fn purge_batch(store: &Store, purge: Uuid) -> anyhow::Result<bool> {
    let deleted = store.purge_batch(purge).await?;
    if deleted > 0 {
        metrics::counter!("tempmail_messages_purged_total").increment(deleted);
        tokio::time::sleep(PURGE_PAUSE).await;
    }
    Ok(deleted > 0)
}

/// Entries that are logged together.
const AUDIT_BATCH: i64 = 500;

/// Sends the audit trail to the log, for systems that collect logs: every entry that is not in the log yet, oldest
/// first. One is logged twice, with the same id, where the process
/// ends before that is recorded, or where two workers are at it.
pub(crate) async fn log_audit_trail(store: &Store, now: Timestamp) -> anyhow::Result<()> {
    loop {
        let entries = store.list_unlogged_audit(AUDIT_BATCH).await?;
        let age = entries.first().map_or(0.0, |oldest| now.duration_since(oldest.at()).as_secs_f64());
        metrics::gauge!("tempmail_audit_oldest_unlogged_seconds").set(age.max(0.0));
        if entries.is_empty() {
            return Ok(());
        }
        entries.iter().for_each(log);
        let ids: Vec<_> = entries.iter().map(|entry| entry.id).collect();
        store.record_audit_logged(&ids).await?;
    }
}

fn log(entry: &AuditEntry) {
    tracing::info!(
        target: "tempmail::audit",
        id = %entry.id,
        time = %entry.at(),
        actor = entry.actor,
        login = entry.login,
        action = entry.action,
        kind = entry.kind,
        subject = entry.subject,
        tenant = entry.tenant.map(tracing::field::display),
        "audit"
    );
}

/// Webhooks that are read together.
const RESEAL_BATCH: i64 = 500;

/// Seals again with the first key of `secrets.keys` what another key of the ring sealed, so that this one can be
/// removed. Counts values by the key that sealed them.
pub(crate) struct Resealer {
    webhook_secrets: WebhookSecretSealer,
    verify_token_key: VerifyTokenKeySealer,
}

/// How many values which key of the ring sealed.
#[derive(Debug, Default)]
struct SealedValues {
    first: u64,
    /// Left to the next pass, since another statement changed them.
    other: u64,
    none: u64,
}

impl Resealer {
    /// With the keys of `secrets.keys`, of which there is at least one.
    pub(crate) fn new(keys: &[MasterKey]) -> Self {
        Self {
            webhook_secrets: WebhookSecretSealer::new(keys),
            verify_token_key: VerifyTokenKeySealer::new(keys),
        }
    }

    /// Goes over all sealed values once. A value that no key opens stays as it is.
    pub(crate) async fn run(&self, store: &Store) -> anyhow::Result<()> {
        let mut values = SealedValues::default();
        self.reseal_verify_token_key(store, &mut values).await?;
        self.reseal_webhook_secrets(store, &mut values).await?;
        values.publish();
        Ok(())
    }

    async fn reseal_verify_token_key(&self, store: &Store, values: &mut SealedValues) -> anyhow::Result<()> {
        let Some(kept) = store.find_verify_token_key().await? else { return Ok(()) };
        match self.verify_token_key.reseal(&kept) {
            Reseal::Current => values.first += 1,
            Reseal::Unopened => values.none += 1,
            Reseal::Resealed(resealed) => {
                let stored = store.reseal_verify_token_key(&kept, &resealed).await?;
                values.add_resealed(1, stored.into());
            }
        }
        Ok(())
    }

    async fn reseal_webhook_secrets(&self, store: &Store, values: &mut SealedValues) -> anyhow::Result<()> {
        let mut last = Uuid::nil();
        loop {
            let secrets = store.list_webhook_secrets(last, RESEAL_BATCH).await?;
            let Some(end) = secrets.last() else { return Ok(()) };
            last = end.webhook;
            let mut changed = Vec::new();
            for former in secrets {
                match self.webhook_secrets.reseal(former.webhook, &former.sealed) {
                    Reseal::Current => values.first += 1,
                    Reseal::Unopened => values.none += 1,
                    Reseal::Resealed(resealed) => changed.push(ResealedWebhookSecret { former, resealed }),
                }
            }
            if !changed.is_empty() {
                let stored = store.reseal_webhook_secrets(&changed).await?;
                values.add_resealed(changed.len() as u64, stored);
            }
        }
    }
}

impl SealedValues {
    /// Adds values that were sealed again, and of which `stored` are stored.
    fn add_resealed(&mut self, resealed: u64, stored: u64) {
        self.first += stored;
        self.other += resealed - stored;
    }

    fn publish(&self) {
        for (key, count) in [("first", self.first), ("other", self.other), ("none", self.none)] {
            #[expect(clippy::cast_precision_loss, reason = "a gauge of some thousands")]
            metrics::gauge!("tempmail_sealed_values", "key" => key).set(count as f64);
        }
    }
}
