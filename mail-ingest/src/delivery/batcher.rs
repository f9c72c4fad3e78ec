//! The batcher: one task, one connection, one statement at a time.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_model::message::Arrival;
use tempmail_store::{DeliveryRules, NewMail, Outcome, Store, StoreError, Writer};
use tokio::sync::{mpsc, oneshot};

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
    rules: DeliveryRules,
    under_way: UnderWay,
    writer: Option<Writer>,
    used_at: Instant,
}

impl Batcher {
    pub(super) fn new(
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        rules: DeliveryRules,
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
                let alone = mails.len() == 1;
                for ((mail, outcome), reply) in mails.into_iter().zip(outcomes).zip(replies) {
                    let verdict = match outcome {
                        Outcome::OverQuota if !alone => self.commit_alone(mail).await,
                        outcome => verdict(&outcome),
                    };
                    answer(reply, verdict);
                }
            }
            // Not to be told which mail is at fault: each on its own.
            Err(error) if is_fault_of_data(&error) && mails.len() > 1 => {
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

    /// One statement; once more where only the partition was missing.
    async fn accept(&mut self, mails: &[NewMail]) -> Result<Vec<Outcome>, StoreError> {
        match self.try_accept(mails).await {
            Err(error) if error.is_missing_slot() => {
                self.make_slots().await?;
                self.try_accept(mails).await
            }
            result => result,
        }
    }

    async fn try_accept(&mut self, mails: &[NewMail]) -> Result<Vec<Outcome>, StoreError> {
        if self.used_at.elapsed() > PING_AFTER_IDLE
            && let Some(mut writer) = self.writer.take()
            && writer.is_alive().await
        {
            self.writer = Some(writer);
        }
        self.used_at = Instant::now();
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.store.writer().await?),
        };
        let result = writer.accept_mail(self.rules, self.clock.now(), mails).await;
        if let Err(error) = &result {
            tracing::warn!(%error, mails = mails.len(), "a batch was not stored");
            if error.is_unavailable()
                && let Some(writer) = self.writer.take()
            {
                writer.discard();
            }
        }
        result
    }

    /// The worker makes slots ahead; this is for when it is away.
    async fn make_slots(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        for class in self.store.live_classes().await? {
            self.store.ensure_slot(class, now).await?;
            self.store.ensure_slot(class, now + class.slot_width()).await?;
        }
        Ok(())
    }

    /// One hint for the whole batch, after its commit.
    fn announce(&self, outcomes: &[Outcome]) {
        let arrivals: Vec<Arrival> = outcomes
            .iter()
            .flat_map(|outcome| match outcome {
                Outcome::Stored(arrivals) => arrivals.as_slice(),
                _ => &[],
            })
            .copied()
            .collect();
        if !arrivals.is_empty() {
            self.bus.publish(arrivals);
        }
    }
}

/// The first mails of `waiting`, up to the bounds of a batch; at least one.
fn take_batch(waiting: &mut Vec<Waiting>) -> Vec<Waiting> {
    let (mut octets, mut recipients) = (0, 0);
    let fits = waiting
        .iter()
        .take_while(|one| {
            let fits = octets < BATCH_OCTETS && recipients < BATCH_RECIPIENTS;
            octets += one.mail.raw.len();
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

fn verdict(outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Stored(_) => Verdict::Stored,
        Outcome::RecipientGone => Verdict::RecipientsChanged,
        Outcome::OverQuota => Verdict::Full,
    }
}

fn verdict_of_error(error: &StoreError) -> Verdict {
    if is_fault_of_data(error) { Verdict::Refused } else { Verdict::TryAgain }
}

/// Only what Postgres says of the data itself condemns a mail; every other fault may pass.
fn is_fault_of_data(error: &StoreError) -> bool {
    error.is_data_refused() && !error.is_missing_slot()
}
