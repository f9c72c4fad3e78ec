//! The batcher: one task, one connection, one statement at a time.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_model::message::Arrival;
use tempmail_store::{AcceptOutcome, DeliveryLimits, MailWriter, NewMail, RawData, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::Verdict;
use super::under_way::UnderWay;

/// Mails a batch at most.
const BATCH_MAILS: usize = 256;
/// Compressed octets from which on a batch is complete.
const BATCH_OCTETS: usize = 4 << 20;
/// Recipients from which on a batch is complete.
const BATCH_RECIPIENTS: usize = 1_000;

/// A restart of Postgres is not to cost the first mail after it: an idle connection is tried.
const PING_AFTER_IDLE: Duration = Duration::from_secs(2);

/// Longest wait for mails that are on their way, when a batch could begin.
const GATHER: Duration = Duration::from_millis(1);

/// A mail whose session waits for the verdict.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) mail: NewMail,
    pub(super) reply: oneshot::Sender<Verdict>,
}

pub(super) struct Batcher {
    store: Store,
    bus: SharedBus,
    clock: Arc<dyn Clock>,
    rules: DeliveryLimits,
    under_way: UnderWay,
    writer: Option<MailWriter>,
    used_at: Instant,
}

impl Batcher {
    pub(super) fn new(
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        rules: DeliveryLimits,
        under_way: UnderWay,
    ) -> Self {
        Self { store, bus, clock, rules, under_way, writer: None, used_at: Instant::now() }
    }

    /// Runs until every [`Delivery`](super::Delivery) handle is gone and all that waited has
    /// its verdict.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Waiting>) {
        let mut waiting = Vec::with_capacity(BATCH_MAILS);
        while queue.recv_many(&mut waiting, BATCH_MAILS).await > 0 {
            self.gather(&mut queue, &mut waiting).await;
            while !waiting.is_empty() {
                let batch = take_batch(&mut waiting);
                self.commit(batch).await;
            }
        }
    }

    /// Lets the mails that are on their way come in, until half of them wait or [`GATHER`] has
    /// passed: a statement costs as much for itself as for ten mails. Half, so that the others
    /// go on while this batch commits. A mail that is alone waits for nobody.
    async fn gather(&self, queue: &mut mpsc::Receiver<Waiting>, waiting: &mut Vec<Waiting>) {
        let mut patience = pin!(tokio::time::sleep(GATHER));
        while waiting.len() < BATCH_MAILS && waiting.len() * 2 < self.under_way.count() {
            let room = BATCH_MAILS - waiting.len();
            tokio::select! {
                biased;
                taken = queue.recv_many(waiting, room) => if taken == 0 { return },
                () = &mut patience => return,
            }
        }
    }

    /// Commits a batch and answers every session in it.
    async fn commit(&mut self, batch: Vec<Waiting>) {
        let (mails, replies): (Vec<NewMail>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.mail, waiting.reply)).unzip();
        metrics::histogram!("tempmail_ingest_batch_mails")
            .record(u32::try_from(mails.len()).unwrap_or(u32::MAX));
        match self.accept(&mails).await {
            Ok(outcomes) => {
                self.announce(&outcomes);
                for ((mail, outcome), reply) in mails.into_iter().zip(outcomes).zip(replies) {
                    let verdict = match outcome {
                        AcceptOutcome::OverQuota(inboxes) => self.commit_exactly(mail, &inboxes).await,
                        outcome => verdict(&outcome),
                    };
                    answer(reply, verdict);
                }
            }
            // Postgres does not say which mail is at fault: each on its own.
            Err(error) if is_fault_of_one(&error) && mails.len() > 1 => {
                for (mail, reply) in mails.into_iter().zip(replies) {
                    let verdict = self.commit_alone(mail).await;
                    answer(reply, verdict);
                }
            }
            Err(error) => {
                let verdict = verdict_of_error(&error);
                for reply in replies {
                    answer(reply, verdict);
                }
            }
        }
    }

    async fn commit_alone(&mut self, mail: NewMail) -> Verdict {
        match self.accept(&[mail]).await {
            Ok(outcomes) => {
                self.announce(&outcomes);
                outcomes.first().map_or(Verdict::TryAgain, verdict)
            }
            Err(error) => verdict_of_error(&error),
        }
    }

    /// The last word on a mail that does not fit by the sums that are kept: what has expired is taken out of
    /// them, and the mail is alone.
    async fn commit_exactly(&mut self, mail: NewMail, inboxes: &[Uuid]) -> Verdict {
        let expired = match &mut self.writer {
            Some(writer) => writer.expire_usage(inboxes, self.clock.now()).await,
            None => Ok(()),
        };
        match expired {
            Ok(()) => self.commit_alone(mail).await,
            Err(error) => self.failed(&error, 1),
        }
    }

    /// One statement; once more where only the partition was missing.
    async fn accept(&mut self, mails: &[NewMail]) -> Result<Vec<AcceptOutcome>, StoreError> {
        match self.try_accept(mails).await {
            Err(error) if error.is_missing_partition() => {
                create_partitions(&self.store, self.clock.now()).await?;
                self.try_accept(mails).await
            }
            result => result,
        }
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
        let result = writer.accept_mail(self.rules, self.clock.now(), mails).await;
        if let Err(error) = &result {
            self.failed(error, mails.len());
        }
        result
    }

    /// Logs a statement that failed, and gives up a connection that may be broken.
    fn failed(&mut self, error: &StoreError, mails: usize) -> Verdict {
        tracing::warn!(%error, mails, "a batch was not stored");
        if error.is_unavailable()
            && let Some(writer) = self.writer.take()
        {
            writer.discard();
        }
        verdict_of_error(error)
    }

    /// One hint for the whole batch, after its commit.
    fn announce(&self, outcomes: &[AcceptOutcome]) {
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

/// Creates the partitions of every live class for now; the worker creates them ahead, and this is for when it
/// is away.
pub(super) async fn create_partitions(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    for class in store.list_active_classes().await? {
        store.ensure_message_partition(class, now).await?;
        store.ensure_message_partition(class, now + class.partition_width()).await?;
    }
    Ok(())
}

/// The first mails of `waiting`, up to the bounds of a batch; at least one.
fn take_batch(waiting: &mut Vec<Waiting>) -> Vec<Waiting> {
    let (mut octets, mut recipients) = (0, 0);
    let fits = waiting
        .iter()
        .take_while(|one| {
            let fits = octets < BATCH_OCTETS && recipients < BATCH_RECIPIENTS;
            octets += match &one.mail.raw {
                RawData::Inline(octets) => octets.len(),
                RawData::StoredSeparately => 0,
            };
            recipients += one.mail.recipients.len();
            fits
        })
        .count();
    waiting.drain(..fits).collect()
}

fn answer(reply: oneshot::Sender<Verdict>, verdict: Verdict) {
    // A session that went away needs no answer.
    let _ = reply.send(verdict);
}

fn verdict(outcome: &AcceptOutcome) -> Verdict {
    match outcome {
        AcceptOutcome::Stored(_) => Verdict::Stored,
        AcceptOutcome::RecipientGone => Verdict::RecipientsChanged,
        AcceptOutcome::OverQuota(_) => Verdict::Full,
    }
}

fn verdict_of_error(error: &StoreError) -> Verdict {
    if is_fault_of_data(error) { Verdict::Refused } else { Verdict::TryAgain }
}

/// What concerns a single mail of a batch.
fn is_fault_of_one(error: &StoreError) -> bool {
    is_fault_of_data(error) || error.is_retention_changed()
}

/// Only what Postgres says of the data itself condemns a mail; every other fault may pass.
fn is_fault_of_data(error: &StoreError) -> bool {
    error.is_data_refused() && !error.is_missing_partition()
}
