//! The batcher commits mail in batches: one task, one connection, one statement at a time. What is queued while a
//! statement runs is the next batch.
//!
//! Where Postgres falls silent, a batch waits for it until the end of its statement. What was queued meanwhile is
//! deferred with it, so no sender waits for more than one such time. Then the batcher locks the stream every second,
//! until that works, and the process is not ready until then: a process that is not ready gets no mail to try with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_model::message::Arrival;
use tempmail_runtime::liveness::TaskPulse;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::traces::{AttributeValue, Stage, StageTimer};
use tempmail_store::{AcceptOutcome, DeliveryLimits, MailWriter, NewMail, Store, StoreError};
use tokio::sync::oneshot;

use super::batch_queues::{BATCH_MAILS_MAX, BatchBounds, BatchOutcome, BatchQueues, QueuedMail, take_batch};
use crate::capacity::CapacityGate;
use crate::smtp::DeliveryOutcome;

/// Time between two probes while mail can't be stored.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// A statement that fails after this time or later counts as one that Postgres did not answer: it may have waited for a
/// lock of a connection that is silent, as the next one would.
const LONG_WAIT: Duration = Duration::from_secs(3);

/// The component in `/readyz`.
const COMPONENT: &str = "batcher";

/// The state of the task.
pub(super) struct Batcher {
    store: Store,
    bus: SharedBus,
    clock: Arc<dyn Clock>,
    limits: DeliveryLimits,
    capacity: CapacityGate,
    writer: Option<MailWriter>,
    readiness: Readiness,
    pulse: TaskPulse,
    /// What came of the last statement.
    state: StoreState,
}

/// What the batcher knows of Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreState {
    /// It stores mail, or rejects it for a reason of its own.
    Working,
    /// It is not available; the process is not ready.
    Unavailable,
    /// The same, and mail that is queued has waited for its last statement for long.
    Silent,
}

impl Batcher {
    pub(super) fn new(
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        limits: DeliveryLimits,
        capacity: CapacityGate,
        readiness: Readiness,
    ) -> Self {
        let pulse = readiness.liveness().watch(COMPONENT);
        let state = StoreState::Working;
        Self { store, bus, clock, limits, capacity, writer: None, readiness, pulse, state }
    }

    /// Runs until all senders are dropped and every queued mail has its outcome.
    pub(super) async fn run(mut self, mut queues: BatchQueues) {
        let mut small = Vec::with_capacity(BATCH_MAILS_MAX);
        let mut bulky = Vec::new();
        loop {
            tokio::select! {
                biased;
                received = queues.receive(&mut small, &mut bulky) => if !received { return },
                () = tokio::time::sleep(PROBE_PAUSE), if self.state != StoreState::Working => {
                    self.probe().await;
                }
            }
            self.defer_if_silent(&mut queues, &mut small, &mut bulky);
            while !small.is_empty() {
                let batch = take_batch(&mut small, BatchBounds::SMALL);
                self.commit(batch).await;
                self.defer_if_silent(&mut queues, &mut small, &mut bulky);
            }
            if !bulky.is_empty() {
                let batch = take_batch(&mut bulky, BatchBounds::BULKY);
                self.commit(batch).await;
                self.defer_if_silent(&mut queues, &mut small, &mut bulky);
            }
        }
    }

    /// Defers what was queued while Postgres was silent: it has waited as long as the batch did.
    fn defer_if_silent(
        &mut self,
        queues: &mut BatchQueues,
        small: &mut Vec<QueuedMail>,
        bulky: &mut Vec<QueuedMail>,
    ) {
        if self.state == StoreState::Silent {
            self.state = StoreState::Unavailable;
            for QueuedMail { reply, .. } in small.drain(..).chain(bulky.drain(..)).chain(queues.drain()) {
                send_outcome(reply, BatchOutcome::Final(DeliveryOutcome::Unavailable));
            }
        }
    }

    /// Whether mail can be stored again.
    async fn probe(&mut self) {
        let _work = self.pulse.begin();
        let started = Instant::now();
        let probed = match self.writer().await {
            Ok(writer) => writer.probe().await,
            Err(error) => Err(error),
        };
        self.note_result(&probed, started.elapsed());
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
                    send_outcome(reply, batch_outcome(mail, outcome));
                }
            }
            // Postgres does not report which mail is invalid: each is committed by itself.
            Err(error) if concerns_one_mail(&error) && mails.len() > 1 => {
                for (mail, reply) in mails.into_iter().zip(replies) {
                    let outcome = match self.state {
                        StoreState::Working => self.commit_single(mail).await,
                        StoreState::Unavailable | StoreState::Silent => {
                            BatchOutcome::Final(DeliveryOutcome::Unavailable)
                        }
                    };
                    send_outcome(reply, outcome);
                }
            }
            Err(error) => {
                for reply in replies {
                    send_outcome(reply, BatchOutcome::Final(outcome_of_error(&error)));
                }
            }
        }
    }

    async fn commit_single(&mut self, mail: NewMail) -> BatchOutcome {
        match self.accept(std::slice::from_ref(&mail)).await {
            Ok(outcomes) => {
                self.publish_arrivals(&outcomes);
                let outcome = outcomes.into_iter().next();
                outcome.map_or(BatchOutcome::Final(DeliveryOutcome::Unavailable), |outcome| {
                    batch_outcome(mail, outcome)
                })
            }
            Err(error) => BatchOutcome::Final(outcome_of_error(&error)),
        }
    }

    /// Executes the statement, and once more if a partition was missing.
    async fn accept(&mut self, mails: &[NewMail]) -> Result<Vec<AcceptOutcome>, StoreError> {
        let _work = self.pulse.begin();
        let (started, timer) = (Instant::now(), StageTimer::start(Stage::Batch));
        let mut accepted = self.try_accept(mails).await;
        if accepted.as_ref().is_err_and(StoreError::is_missing_partition) {
            accepted = match create_partitions(&self.store, self.clock.now()).await {
                Ok(()) => self.try_accept(mails).await,
                Err(error) => Err(error),
            };
        }
        if let Err(error) = &accepted {
            tracing::warn!(%error, mails = mails.len(), "a batch of mails was not stored");
        }
        self.note_result(&accepted, started.elapsed());
        metrics::histogram!("tempmail_ingest_commit_seconds").record(started.elapsed());
        timer.end(
            mails.iter().flat_map(|mail| &mail.recipients).map(|message| message.id),
            accepted.is_err().then_some("not_committed"),
            &[("tempmail.batch.mails", AttributeValue::number(mails.len()))],
        );
        accepted
    }

    async fn try_accept(&mut self, mails: &[NewMail]) -> Result<Vec<AcceptOutcome>, StoreError> {
        let (limits, now) = (self.capacity.limits_now(self.limits), self.clock.now());
        self.writer().await?.accept_mail(limits, now, mails).await
    }

    /// The connection, which is opened where there is none that works.
    async fn writer(&mut self) -> Result<&mut MailWriter, StoreError> {
        if let Some(mut writer) = self.writer.take()
            && writer.is_alive().await
        {
            self.writer = Some(writer);
        }
        Ok(match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.store.mail_writer().await?),
        })
    }

    /// Takes note of what came of a statement after `waited`, and closes the connection if it may be broken.
    fn note_result<T>(&mut self, result: &Result<T, StoreError>, waited: Duration) {
        match result {
            Err(error) if error.is_unavailable() => {
                self.writer = None;
                let is_silent = error.is_silent() || waited >= LONG_WAIT;
                self.state = if is_silent { StoreState::Silent } else { StoreState::Unavailable };
                self.readiness.set_not_ready(COMPONENT, format!("mail can't be stored: {error}"));
            }
            _ if self.state != StoreState::Working => {
                self.state = StoreState::Working;
                self.readiness.set_ready(COMPONENT);
            }
            _ => {}
        }
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

/// Creates the current and the next partition of every retention class in use. The worker creates
/// partitions ahead; this is for mail that arrives while no worker runs.
pub(super) async fn create_partitions(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    for class in store.list_active_classes().await? {
        store.ensure_message_partition(class, now).await?;
        store.ensure_message_partition(class, now + class.partition_width()).await?;
    }
    Ok(())
}

fn send_outcome(reply: oneshot::Sender<BatchOutcome>, outcome: BatchOutcome) {
    // The session may have ended.
    let _ = reply.send(outcome);
}

fn batch_outcome(mail: NewMail, outcome: AcceptOutcome) -> BatchOutcome {
    BatchOutcome::Final(match outcome {
        AcceptOutcome::Stored(_) => DeliveryOutcome::Stored,
        AcceptOutcome::RecipientGone => DeliveryOutcome::RecipientsChanged,
        AcceptOutcome::OverQuota(inboxes) => return BatchOutcome::OverQuota(Box::new(mail), inboxes),
        AcceptOutcome::StoreFull => DeliveryOutcome::StoreFull,
    })
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
