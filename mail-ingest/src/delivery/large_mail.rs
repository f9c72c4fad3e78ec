//! Medium and large mail. Few are prepared and uploaded at once, so that they leave processor and disk to small mail;
//! tenants take turns, and within a tenant peers. The data of a large mail is not stored under the lock of the stream,
//! since all other mail would wait: it is uploaded before, in parts, and the batcher stores the messages only.

use std::sync::Arc;
use std::time::Duration;

use tempmail_admission::{Client, ClientNetwork, Turn, TurnBounds, TurnKey, Turns};
use tempmail_model::clock::Clock;
use tempmail_model::retention::RetentionClass;
use tempmail_runtime::cores;
use tempmail_store::{
    DeliveryLimits, DeliveryPreflight, NewMail, RAW_PART_BYTES, RawData, Store, StoreError,
};
use tokio::sync::Notify;
use uuid::Uuid;

use super::batcher::create_partitions;
use crate::memory::TenantKey;
use crate::smtp::{DeliveryOutcome, ReceivedMail};

/// Data of fewer bytes is prepared in the session's task.
const MEDIUM_FROM: usize = 128 << 10;
/// Data of more bytes is large.
const MEDIUM_MAX: usize = 2 << 20;

/// Mails of a class that may wait for a turn. Those of a peer are bounded by its connections.
const WAITING: usize = 1_000;
/// How long a mail may wait for its turn. A sender waits for 10 minutes (RFC 5321 4.5.3.2.6).
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// The class of a mail by the size of its data. Each is prepared beside the others, so that no mail waits for one that
/// is much larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SizeClass {
    /// Parsed and compressed in the session's task, in less than a millisecond.
    Small,
    /// Parsed and compressed outside the async threads, few at once.
    Medium,
    /// As medium ones, which do not wait for it.
    Large,
}

/// Limits and uploads medium and large mail.
pub(super) struct LargeMailUploader {
    store: Store,
    clock: Arc<dyn Clock>,
    medium: Turns<TurnParty>,
    large: Turns<TurnParty>,
    /// Notified where an upload waited for Postgres as long as it may: those that wait for a turn would, too.
    silent: Notify,
}

/// Who takes turns with others: mail to a tenant and, within that, a peer by its widest network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TurnParty {
    To(TenantKey),
    From(ClientNetwork),
}

/// Data in the store that no message refers to yet.
pub(super) struct UploadedData {
    mail: Uuid,
    classes: Vec<RetentionClass>,
}

impl SizeClass {
    /// The class of a mail with so many bytes of data.
    pub(super) fn of(bytes: usize) -> Self {
        match bytes {
            0..MEDIUM_FROM => Self::Small,
            MEDIUM_FROM..=MEDIUM_MAX => Self::Medium,
            _ => Self::Large,
        }
    }
}

impl LargeMailUploader {
    pub(super) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let bounds = TurnBounds {
            at_once: cores::half(),
            at_once_of_party: cores::half(),
            waiting: WAITING,
            waiting_of_member: WAITING,
        };
        let (medium, large) = (Turns::new(bounds), Turns::new(bounds));
        Self { store, clock, medium, large, silent: Notify::new() }
    }

    /// Waits for a turn to prepare and upload a mail; `None` if it is a small one.
    ///
    /// # Errors
    /// There was none, or Postgres fell silent meanwhile.
    pub(super) async fn acquire_turn(
        &self,
        mail: &ReceivedMail,
    ) -> Result<Option<Turn<TurnParty>>, DeliveryOutcome> {
        let turns = match SizeClass::of(mail.data.len()) {
            SizeClass::Small => return Ok(None),
            SizeClass::Medium => &self.medium,
            SizeClass::Large => &self.large,
        };
        let tenant = mail.recipients.first().and_then(|recipient| recipient.tenant);
        let peer = Client::Address(mail.peer.address).widest();
        let key = TurnKey { party: TurnParty::To(tenant), member: TurnParty::From(peer) };
        tokio::select! {
            biased;
            turn = turns.acquire(key, TURN_TIMEOUT) => turn.map(Some).map_err(|_| DeliveryOutcome::Busy),
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
        let mut part = 0;
        while self.store_part(mail, classes, data, part).await? {
            part += 1;
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
