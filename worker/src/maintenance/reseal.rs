//! Seals again with the first key of `secrets.keys` what another key of the ring sealed, so that this one can be removed.

use tempmail_model::key::MasterKey;
use tempmail_model::sealer::Reseal;
use tempmail_model::verify_token::VerifyTokenKeySealer;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_store::{ResealedWebhookSecret, Store};
use uuid::Uuid;

/// Webhooks that are read together.
const BATCH: i64 = 500;

/// Seals values of the store again, and counts them by the key that sealed them.
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
            let secrets = store.list_webhook_secrets(last, BATCH).await?;
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
