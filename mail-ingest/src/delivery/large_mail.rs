//! Large mail. Its data is not stored under the lock of the stream, since all other mail would wait:
//! it is uploaded before, in parts, and the batcher stores the messages only. The number of medium and
//! large mails that are processed at once is limited, so that they leave processor and disk to the others;
//! peers and tenants take turns.

use std::sync::Arc;
use std::time::Instant;

use tempmail_model::clock::Clock;
use tempmail_model::retention::RetentionClass;
use tempmail_store::{
    DeliveryLimits, DeliveryPreflight, NewMail, RAW_PART_BYTES, RawData, Store, StoreError,
};
use tokio::sync::Notify;
use tokio::time::sleep;
use uuid::Uuid;

use super::partition::create_partitions;
use super::size_class::SizeClass;
use super::small_mail::SmallMail;
use crate::fair_permits::{FairPermit, FairPermits};
use crate::memory::TenantKey;
use crate::peer::{Peer, PeerNetwork};
use crate::smtp::{DeliveryOutcome, ReceivedMail};

/// Uploads the data of large mail.
pub(super) struct LargeMailUploader {
    store: Store,
    clock: Arc<dyn Clock>,
    medium: FairPermits<SenderKey>,
    large: FairPermits<SenderKey>,
    small_mail: Arc<SmallMail>,
    /// Notified where an upload waited for Postgres as long as it may: those that wait for a permit would, too.
    silent: Notify,
}

/// Who takes turns with others: a peer, by its widest network, with the mail of one tenant.
type SenderKey = (Option<PeerNetwork>, TenantKey);

/// The right to prepare and upload a mail; released on drop.
pub(super) type LargeMailPermit = FairPermit<SenderKey>;

/// Data in the store that no message refers to yet.
pub(super) struct UploadedData {
    mail: Uuid,
    classes: Vec<RetentionClass>,
}

impl LargeMailUploader {
    pub(super) fn new(store: Store, clock: Arc<dyn Clock>, small_mail: Arc<SmallMail>) -> Self {
        let (medium, large) = (FairPermits::for_half_of_the_cores(), FairPermits::for_half_of_the_cores());
        Self { store, clock, medium, large, small_mail, silent: Notify::new() }
    }

    /// Waits for a permit to prepare and upload a mail; `None` if it is a small one.
    ///
    /// # Errors
    /// Postgres fell silent meanwhile.
    pub(super) async fn acquire_permit(
        &self,
        mail: &ReceivedMail,
    ) -> Result<Option<LargeMailPermit>, DeliveryOutcome> {
        let permits = match SizeClass::of(mail.data.len()) {
            SizeClass::Small => {
                self.small_mail.record();
                return Ok(None);
            }
            SizeClass::Medium => &self.medium,
            SizeClass::Large => &self.large,
        };
        let tenant = mail.recipients.first().and_then(|recipient| recipient.tenant);
        tokio::select! {
            biased;
            permit = permits.acquire((mail.client.peer.map(Peer::widest), tenant)) => Ok(Some(permit)),
            () = self.silent.notified() => Err(DeliveryOutcome::Unavailable),
        }
    }

    /// Uploads the compressed data of a large mail; `None` if it is not large.
    ///
    /// # Errors
    /// The outcome of the delivery. The data is deleted, or expires with its partition.
    pub(super) async fn upload(
        &self,
        mail: &mut NewMail,
        limits: DeliveryLimits,
    ) -> Result<Option<UploadedData>, DeliveryOutcome> {
        let data = match &mut mail.raw {
            RawData::Inline(data) if is_large(data.len()) => std::mem::take(data),
            _ => return Ok(None),
        };
        mail.raw = RawData::StoredSeparately { bytes: data.len() };
        let ahead = self.preflight(mail, limits).await.map_err(|error| self.unavailable(&error))?;
        if ahead.store_full {
            return Err(DeliveryOutcome::StoreFull);
        } else if ahead.is_over_quota() {
            return Err(DeliveryOutcome::OverQuota);
        }
        let uploaded = UploadedData { mail: mail.id, classes: ahead.classes };
        match self.store_parts(mail, &uploaded.classes, &data).await {
            Ok(()) => Ok(Some(uploaded)),
            Err(error) => {
                self.discard(uploaded);
                Err(self.unavailable(&error))
            }
        }
    }

    /// What storing the mail would need, after what expired was subtracted from the sums of full inboxes.
    async fn preflight(
        &self,
        mail: &NewMail,
        limits: DeliveryLimits,
    ) -> Result<DeliveryPreflight, StoreError> {
        let now = self.clock.now();
        let ahead = self.store.preflight_delivery(limits, &mail.recipients, now).await?;
        if ahead.full_inboxes.is_empty() {
            return Ok(ahead);
        }
        self.store.expire_usage(&ahead.full_inboxes, now).await?;
        self.store.preflight_delivery(limits, &mail.recipients, now).await
    }

    async fn store_parts(
        &self,
        mail: &NewMail,
        classes: &[RetentionClass],
        data: &[u8],
    ) -> Result<(), StoreError> {
        for part in 0.. {
            let began = Instant::now();
            if !self.store_part(mail, classes, data, part).await? {
                break;
            }
            if let Some(rest) = self.small_mail.rest_after(began.elapsed()) {
                sleep(rest).await;
            }
        }
        Ok(())
    }

    /// Creates a missing partition, which the first part reports, and tries again. `false` where it is the last part.
    async fn store_part(
        &self,
        mail: &NewMail,
        classes: &[RetentionClass],
        data: &[u8],
        part: i16,
    ) -> Result<bool, StoreError> {
        match self.store.store_raw_part(mail.id, classes, mail.for_clause_offset, data, part).await {
            Err(error) if error.is_missing_partition() => {
                create_partitions(&self.store, self.clock.now()).await?;
                self.store.store_raw_part(mail.id, classes, mail.for_clause_offset, data, part).await
            }
            result => result,
        }
    }

    /// Deletes the data of a mail that was not accepted, in the background: its sender waits for the answer.
    pub(super) fn discard(&self, uploaded: UploadedData) {
        let store = self.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.discard_raw(uploaded.mail, &uploaded.classes).await {
                tracing::warn!(%error, "the data of a rejected mail can't be deleted; it expires with its partition");
            }
        });
    }

    fn unavailable(&self, error: &StoreError) -> DeliveryOutcome {
        tracing::warn!(%error, "the data of a large mail was not stored");
        if error.is_silent() {
            self.silent.notify_waiters();
        }
        DeliveryOutcome::Unavailable
    }
}

fn is_large(bytes: usize) -> bool {
    i64::try_from(bytes).is_ok_and(|bytes| bytes > RAW_PART_BYTES)
}
