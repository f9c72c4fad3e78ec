//! Large mail. Its data is not stored under the lock of the stream, since all other mail would wait:
//! it is uploaded before, in parts, and the batcher stores the messages only. The number of large
//! mails that are processed at once is limited, so that they leave processor and disk to the others.

use std::sync::Arc;

use tempmail_model::clock::Clock;
use tempmail_model::retention::RetentionClass;
use tempmail_store::{NewMail, RAW_PART_BYTES, RawData, Store, StoreError};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use super::partition::create_partitions;
use crate::smtp::DeliveryOutcome;

/// Uploads the data of large mail.
pub(super) struct LargeMailUploader {
    store: Store,
    clock: Arc<dyn Clock>,
    free_class: RetentionClass,
    permits: Semaphore,
}

/// Data in the store that no message refers to yet.
pub(super) struct UploadedData {
    mail: Uuid,
    classes: Vec<RetentionClass>,
}

impl LargeMailUploader {
    pub(super) fn new(store: Store, clock: Arc<dyn Clock>, free_class: RetentionClass) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { store, clock, free_class, permits: Semaphore::new((cores / 2).max(1)) }
    }

    /// Waits for a permit to prepare and upload a mail with `bytes` of data; `None` if the mail is not
    /// large.
    pub(super) async fn acquire_permit(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        if is_large(bytes) { self.permits.acquire().await.ok() } else { None }
    }

    /// Uploads the compressed data of a large mail; `None` if it is not large.
    ///
    /// # Errors
    /// The outcome of the delivery. The data is deleted, or expires with its partition.
    pub(super) async fn upload(&self, mail: &mut NewMail) -> Result<Option<UploadedData>, DeliveryOutcome> {
        let data = match &mut mail.raw {
            RawData::Inline(data) if is_large(data.len()) => std::mem::take(data),
            _ => return Ok(None),
        };
        mail.raw = RawData::StoredSeparately;
        let ahead = self.store.preflight_delivery(self.free_class, &mail.recipients, self.clock.now()).await;
        let ahead = ahead.map_err(|error| unavailable(&error))?;
        if ahead.over_quota {
            return Err(DeliveryOutcome::OverQuota);
        }
        let uploaded = UploadedData { mail: mail.id, classes: ahead.classes };
        match self.store_parts(mail, &uploaded.classes, &data).await {
            Ok(()) => Ok(Some(uploaded)),
            Err(error) => {
                self.discard(uploaded).await;
                Err(unavailable(&error))
            }
        }
    }

    /// Creates a missing partition, which the first part reports, and tries again.
    async fn store_parts(
        &self,
        mail: &NewMail,
        classes: &[RetentionClass],
        data: &[u8],
    ) -> Result<(), StoreError> {
        match self.store.store_raw(mail.id, classes, mail.for_clause_offset, data).await {
            Err(error) if error.is_missing_partition() => {
                create_partitions(&self.store, self.clock.now()).await?;
                self.store.store_raw(mail.id, classes, mail.for_clause_offset, data).await
            }
            result => result,
        }
    }

    /// Deletes the data of a mail that was not accepted.
    pub(super) async fn discard(&self, uploaded: UploadedData) {
        if let Err(error) = self.store.discard_raw(uploaded.mail, &uploaded.classes).await {
            tracing::warn!(%error, "the data of a rejected mail can't be deleted; it expires with its partition");
        }
    }
}

fn is_large(bytes: usize) -> bool {
    i64::try_from(bytes).is_ok_and(|bytes| bytes > RAW_PART_BYTES)
}

fn unavailable(error: &StoreError) -> DeliveryOutcome {
    tracing::warn!(%error, "the data of a large mail was not stored");
    DeliveryOutcome::Unavailable
}
