//! The steps of a delivery.

use std::sync::Arc;

use tempmail_bus::SharedBus;
use tempmail_model::address::ReservedLocalParts;
use tempmail_model::clock::Clock;
use tempmail_runtime::config::Config;
use tempmail_runtime::traces::{AttributeValue, StageTimer};
use tempmail_store::{DeliveryLimits, NewMail, Store};
use tokio::sync::{SemaphorePermit, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::batcher::{Batcher, QueuedMail};
use super::in_flight::{InFlight, InFlightGuard};
use super::large_mail::LargeMailUploader;
use super::prepare::prepare;
use super::shared_inbox_capacity::SharedInboxCapacity;
use crate::smtp::{DeliveryOutcome, ReceivedMail, Reply};

/// Maximum queued mails; their bytes are bounded by the memory budget.
const QUEUE_LENGTH: usize = 16_384;

/// Delivers mail. Cheap to clone; the batcher ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    queue: mpsc::Sender<QueuedMail>,
    context: Arc<DeliveryContext>,
}

/// What all clones share.
struct DeliveryContext {
    hostname: String,
    reserved: ReservedLocalParts,
    clock: Arc<dyn Clock>,
    shared_inboxes: SharedInboxCapacity,
    large_mail: LargeMailUploader,
    in_flight: InFlight,
}

impl std::fmt::Debug for DeliveryContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeliveryContext").field("hostname", &self.hostname).finish_non_exhaustive()
    }
}

impl Delivery {
    /// Starts the batcher of this process.
    pub(crate) fn start(
        config: &Config,
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
    ) -> (Self, JoinHandle<()>) {
        let (queue, receiver) = mpsc::channel(QUEUE_LENGTH);
        let free_class = config.retention.free_hours;
        let inbox_bytes = config.limits.inbox_bytes;
        let limits =
            DeliveryLimits { free_class, inbox_bytes: i64::try_from(inbox_bytes).unwrap_or(i64::MAX) };
        let in_flight = InFlight::default();
        let context = DeliveryContext {
            hostname: config.smtp.hostname.clone(),
            reserved: ReservedLocalParts::new(&config.addresses.reserved),
            clock: Arc::clone(&clock),
            shared_inboxes: SharedInboxCapacity::new(inbox_bytes, free_class, store.clone()),
            large_mail: LargeMailUploader::new(store.clone(), Arc::clone(&clock), free_class),
            in_flight: in_flight.clone(),
        };
        let batcher = tokio::spawn(Batcher::new(store, bus, clock, limits, in_flight).run(receiver));
        (Self { queue, context: Arc::new(context) }, batcher)
    }

    /// Counts an open mail transaction as in flight until the guard is dropped.
    pub(crate) fn begin_transaction(&self) -> InFlightGuard {
        self.context.in_flight.begin()
    }

    /// Stores a mail for all of its recipients or for none, and returns when that is certain. Ends `timer`, which
    /// began with the transaction, for its messages.
    pub(crate) async fn deliver(&self, mut mail: ReceivedMail, timer: StageTimer) -> DeliveryOutcome {
        let DeliveryContext { hostname, reserved, clock, large_mail, .. } = &*self.context;
        let bytes = mail.data.len();
        let permit = large_mail.acquire_permit(bytes).await;
        let Some(prepared) = prepare(&mut mail, hostname, reserved, clock.now()).await else {
            return DeliveryOutcome::Unavailable;
        };
        let recipients = prepared.recipients.len();
        let traced = timer.traced(prepared.recipients.iter().map(|message| message.id));
        let outcome = self.store(prepared, permit).await;
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

    /// Stores a prepared mail; `permit` is that of a large one, which ends when its data is uploaded.
    async fn store(&self, mut prepared: NewMail, permit: Option<SemaphorePermit<'_>>) -> DeliveryOutcome {
        let large_mail = &self.context.large_mail;
        if let Err(outcome) = self.check_shared_inboxes(&prepared).await {
            return outcome;
        }
        let uploaded = match large_mail.upload(&mut prepared).await {
            Ok(uploaded) => uploaded,
            Err(outcome) => return outcome,
        };
        drop(permit);
        let (reply, outcome) = oneshot::channel();
        let outcome = match self.queue.send(QueuedMail { mail: prepared, reply }).await {
            Ok(()) => outcome.await.unwrap_or(DeliveryOutcome::Unavailable),
            Err(_) => DeliveryOutcome::Unavailable,
        };
        if let (Some(uploaded), false) = (uploaded, outcome == DeliveryOutcome::Stored) {
            large_mail.discard(uploaded).await;
        }
        outcome
    }

    /// Whether the messages fit into the shared inboxes that they may belong to.
    async fn check_shared_inboxes(&self, mail: &NewMail) -> Result<(), DeliveryOutcome> {
        let DeliveryContext { shared_inboxes, clock, .. } = &*self.context;
        for message in &mail.recipients {
            match shared_inboxes.reserve(message.address.inbox_key(), message.size, clock.now()).await {
                Ok(true) => {}
                Ok(false) => return Err(DeliveryOutcome::OverQuota),
                Err(error) => {
                    tracing::warn!(%error, "the usage of a shared inbox can't be read");
                    return Err(DeliveryOutcome::Unavailable);
                }
            }
        }
        Ok(())
    }
}
