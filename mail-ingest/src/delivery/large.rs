//! Mail whose data is too large to be stored under the stream's lock, for which all other mail waits. Its data
//! is stored ahead, a part at a time, and the batcher then stores its messages alone. Few such mails are
//! prepared and stored at once, so that they leave processor and disk to the others.

use std::sync::Arc;

use tempmail_model::clock::Clock;
use tempmail_model::retention::RetentionClass;
use tempmail_store::{NewMail, RAW_PART_BYTES, RawData, Store, StoreError};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use super::Verdict;
use super::batcher::create_partitions;

pub(super) struct LargeMail {
    store: Store,
    clock: Arc<dyn Clock>,
    free_class: RetentionClass,
    permits: Semaphore,
}

/// Data in the store that no message refers to yet.
pub(super) struct StoredSeparately {
    mail: Uuid,
    classes: Vec<RetentionClass>,
}

impl LargeMail {
    pub(super) fn new(store: Store, clock: Arc<dyn Clock>, free_class: RetentionClass) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { store, clock, free_class, permits: Semaphore::new((cores / 2).max(1)) }
    }

    /// The turn of a mail whose received data has `octets`, for its preparation and storage; `None` where it
    /// needs none.
    pub(super) async fn turn(&self, octets: usize) -> Option<SemaphorePermit<'_>> {
        if is_large(octets) { self.permits.acquire().await.ok() } else { None }
    }

    /// Stores the data of a large mail ahead; `None` where the mail is not large.
    ///
    /// # Errors
    /// The verdict on the mail. Nothing of it is stored, or what is goes with its partition.
    pub(super) async fn store_ahead(&self, mail: &mut NewMail) -> Result<Option<StoredSeparately>, Verdict> {
        let octets = match &mut mail.raw {
            RawData::Inline(octets) if is_large(octets.len()) => std::mem::take(octets),
            _ => return Ok(None),
        };
        mail.raw = RawData::StoredSeparately;
        let ahead = self.store.preflight_delivery(self.free_class, &mail.recipients, self.clock.now()).await;
        let ahead = ahead.map_err(|error| try_again(&error))?;
        if ahead.over_quota {
            return Err(Verdict::Full);
        }
        let stored = StoredSeparately { mail: mail.id, classes: ahead.classes };
        match self.store_parts(mail, &stored.classes, &octets).await {
            Ok(()) => Ok(Some(stored)),
            Err(error) => {
                self.discard(stored).await;
                Err(try_again(&error))
            }
        }
    }

    /// Once more where only the partition was missing: it is the first part that misses it.
    async fn store_parts(
        &self,
        mail: &NewMail,
        classes: &[RetentionClass],
        octets: &[u8],
    ) -> Result<(), StoreError> {
        match self.store.store_raw(mail.id, classes, mail.for_clause_offset, octets).await {
            Err(error) if error.is_missing_partition() => {
                create_partitions(&self.store, self.clock.now()).await?;
                self.store.store_raw(mail.id, classes, mail.for_clause_offset, octets).await
            }
            result => result,
        }
    }

    /// Deletes the data of a mail that was not accepted.
    pub(super) async fn discard(&self, stored: StoredSeparately) {
        if let Err(error) = self.store.discard_raw(stored.mail, &stored.classes).await {
            tracing::warn!(%error, "data of a refused mail stays until its partition expires");
        }
    }
}

fn is_large(octets: usize) -> bool {
    i64::try_from(octets).is_ok_and(|octets| octets > RAW_PART_BYTES)
}

fn try_again(error: &StoreError) -> Verdict {
    tracing::warn!(%error, "the data of a mail was not stored");
    Verdict::TryAgain
}
