//! The batcher commits mail in batches: one task, one connection, one statement at a time.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_model::message::Arrival;
use tempmail_runtime::traces::{AttributeValue, Stage, StageTimer};
use tempmail_store::{AcceptOutcome, DeliveryLimits, MailWriter, NewMail, RawData, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::in_flight::InFlight;
use super::partition::create_partitions;
use crate::smtp::DeliveryOutcome;

/// Maximum mails of a batch.
const BATCH_MAILS_MAX: usize = 256;
/// Compressed bytes that complete a batch.
const BATCH_BYTES: usize = 4 << 20;
/// Recipients that complete a batch.
const BATCH_RECIPIENTS: usize = 1_000;

/// A connection that was idle for longer is tested first, so that a restart of Postgres does not defer
/// the first mail after it.
const PING_AFTER_IDLE: Duration = Duration::from_secs(2);

/// How long a batch waits for mail that is in flight.
const GATHER_TIME: Duration = Duration::from_millis(1);

/// A mail whose session waits for the outcome.
#[derive(Debug)]
pub(super) struct QueuedMail {
    pub(super) mail: NewMail,
    pub(super) reply: oneshot::Sender<DeliveryOutcome>,
}

/// The state of the task.
pub(super) struct Batcher {
    store: Store,
    bus: SharedBus,
    clock: Arc<dyn Clock>,
    limits: DeliveryLimits,
    in_flight: InFlight,
    writer: Option<MailWriter>,
    /// When the connection was last used.
    used_at: Instant,
}

impl Batcher {
    pub(super) fn new(
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        limits: DeliveryLimits,
        in_flight: InFlight,
    ) -> Self {
        Self { store, bus, clock, limits, in_flight, writer: None, used_at: Instant::now() }
    }

    /// Runs until all senders are dropped and every queued mail has its outcome.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<QueuedMail>) {
        let mut queued = Vec::with_capacity(BATCH_MAILS_MAX);
        while queue.recv_many(&mut queued, BATCH_MAILS_MAX).await > 0 {
            self.gather(&mut queue, &mut queued).await;
            while !queued.is_empty() {
                let batch = take_batch(&mut queued);
                self.commit(batch).await;
            }
        }
    }

    /// Waits until half of the mails in flight are queued, for at most [`GATHER_TIME`]: the fixed cost
    /// of a statement is that of ten mails. It is half, so that the other sessions can proceed while
    /// this batch commits. A single mail does not wait.
    async fn gather(&self, queue: &mut mpsc::Receiver<QueuedMail>, queued: &mut Vec<QueuedMail>) {
        let mut timeout = pin!(tokio::time::sleep(GATHER_TIME));
        while queued.len() < BATCH_MAILS_MAX && queued.len() * 2 < self.in_flight.count() {
            let max = BATCH_MAILS_MAX - queued.len();
            tokio::select! {
                biased;
                received = queue.recv_many(queued, max) => if received == 0 { return },
                () = &mut timeout => return,
            }
        }
    }

    /// Commits a batch and sends every session its outcome.
    async fn commit(&mut self, batch: Vec<QueuedMail>) {
        let (mails, replies): (Vec<NewMail>, Vec<_>) =
            batch.into_iter().map(|queued| (queued.mail, queued.reply)).unzip();
        metrics::histogram!("tempmail_ingest_batch_mails")
            .record(u32::try_from(mails.len()).unwrap_or(u32::MAX));
        match self.accept(&mails).await {
            Ok(outcomes) => {
                self.publish_arrivals(&outcomes);
                for ((mail, outcome), reply) in mails.into_iter().zip(outcomes).zip(replies) {
                    let outcome = match outcome {
                        AcceptOutcome::OverQuota(inboxes) => self.retry_after_expiry(mail, &inboxes).await,
                        outcome => delivery_outcome(&outcome),
                    };
                    send_outcome(reply, outcome);
                }
            }
            // Postgres does not report which mail is invalid: each is committed by itself.
            Err(error) if concerns_one_mail(&error) && mails.len() > 1 => {
                for (mail, reply) in mails.into_iter().zip(replies) {
                    let outcome = self.commit_single(mail).await;
                    send_outcome(reply, outcome);
                }
            }
            Err(error) => {
                let outcome = outcome_of_error(&error);
                for reply in replies {
                    send_outcome(reply, outcome);
                }
            }
        }
    }

    async fn commit_single(&mut self, mail: NewMail) -> DeliveryOutcome {
        match self.accept(&[mail]).await {
            Ok(outcomes) => {
                self.publish_arrivals(&outcomes);
                outcomes.first().map_or(DeliveryOutcome::Unavailable, delivery_outcome)
            }
            Err(error) => outcome_of_error(&error),
        }
    }

    /// Tries a mail again that does not fit by the stored sums, by itself and after expired messages
    /// are subtracted from them.
    async fn retry_after_expiry(&mut self, mail: NewMail, inboxes: &[Uuid]) -> DeliveryOutcome {
        let expired = match &mut self.writer {
            Some(writer) => writer.expire_usage(inboxes, self.clock.now()).await,
            None => Ok(()),
        };
        match expired {
            Ok(()) => self.commit_single(mail).await,
            Err(error) => self.handle_failure(&error, 1),
        }
    }

    /// Executes the statement, and once more if a partition was missing.
    async fn accept(&mut self, mails: &[NewMail]) -> Result<Vec<AcceptOutcome>, StoreError> {
        let (started, timer) = (Instant::now(), StageTimer::start(Stage::Batch));
        let mut accepted = self.try_accept(mails).await;
        if accepted.as_ref().is_err_and(StoreError::is_missing_partition) {
            accepted = match create_partitions(&self.store, self.clock.now()).await {
                Ok(()) => self.try_accept(mails).await,
                Err(error) => Err(error),
            };
        }
        metrics::histogram!("tempmail_ingest_commit_seconds").record(started.elapsed());
        timer.end(
            mails.iter().flat_map(|mail| &mail.recipients).map(|message| message.id),
            accepted.is_err().then_some("not_committed"),
            &[("tempmail.batch.mails", AttributeValue::number(mails.len()))],
        );
        accepted
    }

    async fn try_accept(&mut self, mails: &[NewMail]) -> Result<Vec<AcceptOutcome>, StoreError> {
        if self.used_at.elapsed() > PING_AFTER_IDLE
            && let Some(mut writer) = self.writer.take()
            && writer.is_alive().await
        {
            self.writer = Some(writer);
        }
        self.used_at = Instant::now();
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.store.mail_writer().await?),
        };
        let result = writer.accept_mail(self.limits, self.clock.now(), mails).await;
        if let Err(error) = &result {
            self.handle_failure(error, mails.len());
        }
        result
    }

    /// Logs a failed statement, and closes the connection if it may be broken.
    fn handle_failure(&mut self, error: &StoreError, mails: usize) -> DeliveryOutcome {
        tracing::warn!(%error, mails, "a batch of mails was not stored");
        if error.is_unavailable()
            && let Some(writer) = self.writer.take()
        {
            writer.discard();
        }
        outcome_of_error(error)
    }

    /// Publishes the arrivals of a committed batch as one hint.
    fn publish_arrivals(&self, outcomes: &[AcceptOutcome]) {
        let arrivals: Vec<Arrival> = outcomes
            .iter()
            .flat_map(|outcome| match outcome {
                AcceptOutcome::Stored(arrivals) => arrivals.as_slice(),
                _ => &[],
            })
            .copied()
            .collect();
        if !arrivals.is_empty() {
            self.bus.publish(arrivals);
        }
    }
}

/// Removes the first mails, up to the bounds of a batch; at least one.
fn take_batch(queued: &mut Vec<QueuedMail>) -> Vec<QueuedMail> {
    let (mut bytes, mut recipients) = (0, 0);
    let count = queued
        .iter()
        .take_while(|next| {
            let fits = bytes < BATCH_BYTES && recipients < BATCH_RECIPIENTS;
            bytes += match &next.mail.raw {
                RawData::Inline(data) => data.len(),
                RawData::StoredSeparately => 0,
            };
            recipients += next.mail.recipients.len();
            fits
        })
        .count();
    queued.drain(..count).collect()
}

fn send_outcome(reply: oneshot::Sender<DeliveryOutcome>, outcome: DeliveryOutcome) {
    // The session may have ended.
    let _ = reply.send(outcome);
}

fn delivery_outcome(outcome: &AcceptOutcome) -> DeliveryOutcome {
    match outcome {
        AcceptOutcome::Stored(_) => DeliveryOutcome::Stored,
        AcceptOutcome::RecipientGone => DeliveryOutcome::RecipientsChanged,
        AcceptOutcome::OverQuota(_) => DeliveryOutcome::OverQuota,
    }
}

fn outcome_of_error(error: &StoreError) -> DeliveryOutcome {
    if is_data_error(error) { DeliveryOutcome::Rejected } else { DeliveryOutcome::Unavailable }
}

/// Whether the error may concern a single mail of the batch.
fn concerns_one_mail(error: &StoreError) -> bool {
    is_data_error(error) || error.is_retention_changed()
}

/// Whether Postgres rejects the data, and so the mail for good; all other errors may be temporary.
fn is_data_error(error: &StoreError) -> bool {
    error.is_data_refused() && !error.is_missing_partition()
}
