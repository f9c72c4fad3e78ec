//! Delivery: a received mail is prepared in its session's task, and the batcher commits it before
//! the client gets `250`.

mod batch_queues;
mod batcher;
mod large_mail;
mod prepare;
mod shared_inbox_capacity;
mod summary;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempmail_admission::Turn;
use tempmail_bus::SharedBus;
use tempmail_model::address::ReservedLocalParts;
use tempmail_model::clock::Clock;
use tempmail_runtime::config::Config;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::traces::{AttributeValue, StageTimer};
use tempmail_store::{DeliveryLimits, NewMail, Store, StoreError};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, timeout};
use uuid::Uuid;

use self::batch_queues::{BatchOutcome, BatchSender, QueuedMail, batch_queues};
use self::batcher::Batcher;
use self::large_mail::{LargeMailUploader, TurnParty};
use self::prepare::prepare;
use self::shared_inbox_capacity::{SharedInboxCapacity, SharedInboxReservation};
use crate::capacity::CapacityGate;
use crate::smtp::{DeliveryOutcome, ReceivedMail, Reply};

/// Mails beyond a quota that are looked at once more at the same time, so that they leave connections to the others.
const RETRIES_AT_ONCE: usize = 2;
/// How long such a mail may wait for its turn and for Postgres. The batches before and after it take their own time.
const RETRY_TIMEOUT: Duration = Duration::from_secs(2);

/// Delivers mail. Cheap to clone; the batcher ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    queue: BatchSender,
    context: Arc<DeliveryContext>,
}

/// What all clones share.
struct DeliveryContext {
    hostname: String,
    reserved: ReservedLocalParts,
    store: Store,
    clock: Arc<dyn Clock>,
    limits: DeliveryLimits,
    capacity: CapacityGate,
    shared_inboxes: SharedInboxCapacity,
    large_mail: LargeMailUploader,
    retries: Semaphore,
    unanswered: Unanswered,
    measuring: JoinHandle<()>,
}

impl Drop for DeliveryContext {
    fn drop(&mut self) {
        self.measuring.abort();
    }
}

impl DeliveryContext {
    fn limits(&self) -> DeliveryLimits {
        self.capacity.limits_now(self.limits)
    }
}

impl std::fmt::Debug for DeliveryContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeliveryContext").field("hostname", &self.hostname).finish_non_exhaustive()
    }
}

impl Delivery {
    /// Starts the batcher of this process. While mail can't be stored, `readiness` reports it.
    pub(crate) fn start(
        config: &Config,
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        capacity: CapacityGate,
        readiness: Readiness,
    ) -> (Self, JoinHandle<()>) {
        let (queue, receiver) = batch_queues();
        let free_class = config.retention.free_hours;
        let inbox_bytes = config.limits.inbox_bytes;
        let limits = DeliveryLimits {
            free_class,
            inbox_bytes: i64::try_from(inbox_bytes).unwrap_or(i64::MAX),
            tenant_bytes: i64::MAX,
        };
        let unanswered = Unanswered::default();
        let context = DeliveryContext {
            hostname: config.smtp.hostname.clone(),
            reserved: config.reserved_local_parts(),
            store: store.clone(),
            clock: Arc::clone(&clock),
            limits,
            capacity: capacity.clone(),
            shared_inboxes: SharedInboxCapacity::new(inbox_bytes, free_class, store.clone()),
            large_mail: LargeMailUploader::new(store.clone(), Arc::clone(&clock)),
            retries: Semaphore::new(RETRIES_AT_ONCE),
            measuring: tokio::spawn(unanswered.clone().measure()),
            unanswered,
        };
        let batcher = Batcher::new(store, bus, clock, limits, capacity, readiness);
        let batcher = tokio::spawn(batcher.run(receiver));
        (Self { queue, context: Arc::new(context) }, batcher)
    }

    /// Stores a mail for all of its recipients or for none, and returns when that is certain. Ends `timer`, which
    /// began with the transaction, for its messages.
    pub(crate) async fn deliver(&self, mut mail: ReceivedMail, timer: StageTimer) -> DeliveryOutcome {
        let DeliveryContext { hostname, reserved, clock, large_mail, unanswered, .. } = &*self.context;
        let _unanswered = unanswered.begin();
        let bytes = mail.data.len();
        let turn = match large_mail.acquire_turn(&mail).await {
            Ok(turn) => turn,
            Err(outcome) => return outcome,
        };
        let Some(prepared) = prepare(&mut mail, hostname, reserved, clock.now()).await else {
            return DeliveryOutcome::Unavailable;
        };
        let recipients = prepared.recipients.len();
        let traced = timer.traced(prepared.recipients.iter().map(|message| message.id));
        let outcome = self.reserve_and_commit(prepared, turn).await;
        let code = Reply::from(outcome).code();
        timer.end(
            traced,
            (outcome != DeliveryOutcome::Stored).then_some(code),
            &[
                ("tempmail.smtp.reply_code", AttributeValue::Word(code)),
                ("tempmail.smtp.recipients", AttributeValue::number(recipients)),
                ("tempmail.smtp.bytes", AttributeValue::number(bytes)),
            ],
        );
        drop(mail.memory);
        outcome
    }

    /// Stores a prepared mail; `turn` is that of a medium or large one, which ends when its data is uploaded.
    async fn reserve_and_commit(&self, prepared: NewMail, turn: Option<Turn<TurnParty>>) -> DeliveryOutcome {
        let reservations = match self.reserve_shared_inboxes(&prepared).await {
            Ok(reservations) => reservations,
            Err(outcome) => return outcome,
        };
        let outcome = self.upload_and_commit(prepared, turn).await;
        if outcome != DeliveryOutcome::Stored {
            self.release(reservations);
        }
        outcome
    }

    async fn upload_and_commit(
        &self,
        mut prepared: NewMail,
        turn: Option<Turn<TurnParty>>,
    ) -> DeliveryOutcome {
        let DeliveryContext { large_mail, .. } = &*self.context;
        let uploaded = match large_mail.upload(&mut prepared, self.context.limits()).await {
            Ok(uploaded) => uploaded,
            Err(outcome) => return outcome,
        };
        drop(turn);
        let outcome = match self.commit(prepared, false).await {
            BatchOutcome::Final(outcome) => outcome,
            BatchOutcome::OverQuota(mail, inboxes) => self.retry_after_expiry(*mail, &inboxes).await,
        };
        if let (Some(uploaded), false) = (uploaded, outcome == DeliveryOutcome::Stored) {
            large_mail.discard(uploaded);
        }
        outcome
    }

    /// Commits a mail in a batch, or in one of its own.
    async fn commit(&self, mail: NewMail, is_alone: bool) -> BatchOutcome {
        const ENDED: BatchOutcome = BatchOutcome::Final(DeliveryOutcome::Unavailable);
        let (reply, outcome) = oneshot::channel();
        if self.queue.send(QueuedMail { mail, is_alone, reply }).await {
            outcome.await.unwrap_or(ENDED)
        } else {
            ENDED
        }
    }

    /// Tries a mail again that does not fit by the stored sums, by itself and after what expired is subtracted from
    /// those of these inboxes. What does not fit even then costs the batcher nothing more.
    async fn retry_after_expiry(&self, mail: NewMail, inboxes: &[Uuid]) -> DeliveryOutcome {
        match timeout(RETRY_TIMEOUT, self.fits_after_expiry(&mail, inboxes)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return DeliveryOutcome::OverQuota,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the usage of a full inbox can't be read");
                return DeliveryOutcome::Unavailable;
            }
            Err(_) => return DeliveryOutcome::Unavailable,
        }
        match self.commit(mail, true).await {
            BatchOutcome::Final(outcome) => outcome,
            BatchOutcome::OverQuota(..) => DeliveryOutcome::OverQuota,
        }
    }

    async fn fits_after_expiry(&self, mail: &NewMail, inboxes: &[Uuid]) -> Result<bool, StoreError> {
        let DeliveryContext { store, clock, retries, .. } = &*self.context;
        let _permit = retries.acquire().await;
        let now = clock.now();
        store.expire_usage(inboxes, now).await?;
        let ahead = store.preflight_delivery(self.context.limits(), &mail.recipients, now).await?;
        Ok(!ahead.is_over_quota())
    }

    /// Reserves the messages in the shared inboxes that they may belong to.
    async fn reserve_shared_inboxes(
        &self,
        mail: &NewMail,
    ) -> Result<Vec<SharedInboxReservation>, DeliveryOutcome> {
        let DeliveryContext { shared_inboxes, clock, .. } = &*self.context;
        let mut reservations = Vec::with_capacity(mail.recipients.len());
        for message in &mail.recipients {
            let outcome = match shared_inboxes.reserve(message, clock.now()).await {
                Ok(Some(reservation)) => {
                    reservations.push(reservation);
                    continue;
                }
                Ok(None) => DeliveryOutcome::OverQuota,
                Err(error) => {
                    tracing::warn!(%error, "the usage of a shared inbox can't be read");
                    DeliveryOutcome::Unavailable
                }
            };
            self.release(reservations);
            return Err(outcome);
        }
        Ok(reservations)
    }

    fn release(&self, reservations: Vec<SharedInboxReservation>) {
        for reservation in reservations {
            self.context.shared_inboxes.release(reservation);
        }
    }
}

/// Time between two measurements.
const MEASURE_PERIOD: Duration = Duration::from_secs(1);

/// The mails of a process whose senders wait for an answer to their data. Clones share them.
#[derive(Debug, Clone, Default)]
struct Unanswered(Arc<Mutex<UnansweredMails>>);

#[derive(Debug, Default)]
struct UnansweredMails {
    last_number: u64,
    /// When the data of each mail was received; the oldest first.
    since: BTreeMap<u64, Instant>,
}

/// A mail without an answer, until it is dropped.
#[derive(Debug)]
struct UnansweredMail {
    number: u64,
    of: Unanswered,
}

impl Unanswered {
    /// The data of a mail was received.
    fn begin(&self) -> UnansweredMail {
        let mut waiting = self.lock();
        waiting.last_number += 1;
        let number = waiting.last_number;
        waiting.since.insert(number, Instant::now());
        UnansweredMail { number, of: self.clone() }
    }

    /// The time since the data of the oldest mail was received; zero if there is none.
    fn age(&self) -> Duration {
        self.lock().since.values().next().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Sets the gauge every second, until the task is aborted.
    async fn measure(self) {
        let gauge = metrics::gauge!("tempmail_ingest_oldest_unanswered_seconds");
        let mut period = interval(MEASURE_PERIOD);
        loop {
            period.tick().await;
            gauge.set(self.age().as_secs_f64());
        }
    }

    fn lock(&self) -> MutexGuard<'_, UnansweredMails> {
        // Each change is a single insert or remove, so the map is valid after a panic too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnansweredMail {
    fn drop(&mut self) {
        self.of.lock().since.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn measures_the_oldest_mail() {
        let unanswered = Unanswered::default();
        assert_eq!(unanswered.age(), Duration::ZERO);
        let first = unanswered.begin();
        tokio::time::advance(Duration::from_secs(3)).await;
        let _second = unanswered.begin();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(unanswered.age(), Duration::from_secs(4));
        drop(first);
        assert_eq!(unanswered.age(), Duration::from_secs(1));
    }
}
