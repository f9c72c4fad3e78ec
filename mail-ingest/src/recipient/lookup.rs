//! The task that asks Postgres: one connection, one statement at a time, for all that waits.

use std::sync::Arc;
use std::time::Duration;

use tempmail_model::address::{RecipientAddress, Reservation, ReservedLocalParts};
use tempmail_model::clock::Clock;
use tempmail_store::{RecipientQuery, RecipientReader, RecipientStatus, Store};
use tokio::sync::{mpsc, oneshot};

use super::judge::{Accepting, judge};
use crate::smtp::RecipientRefusal;

/// Questions taken at once.
const QUESTIONS: usize = 256;
/// Recipients of one statement.
const RECIPIENTS: usize = 1_000;
/// Longest wait for an answer: then mail is deferred.
const PATIENCE: Duration = Duration::from_secs(10);

/// Recipients with what was found.
pub(super) type Judged = Vec<(RecipientAddress, Result<Accepting, RecipientRefusal>)>;

/// What a session asks.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) addresses: Vec<RecipientAddress>,
    /// What MAIL declared; 0 if nothing.
    pub(super) size: u64,
    pub(super) reply: oneshot::Sender<Judged>,
}

pub(super) struct Lookup {
    reader: RecipientReader,
    clock: Arc<dyn Clock>,
    reserved: ReservedLocalParts,
}

impl Lookup {
    pub(super) fn new(store: Store, clock: Arc<dyn Clock>, reserved: ReservedLocalParts) -> Self {
        Self { reader: RecipientReader::new(store), clock, reserved }
    }

    /// Runs until every [`Recipients`](super::Recipients) handle is gone.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Question>) {
        let mut questions = Vec::with_capacity(QUESTIONS);
        while queue.recv_many(&mut questions, QUESTIONS).await > 0 {
            self.answer(std::mem::take(&mut questions)).await;
        }
    }

    async fn answer(&mut self, questions: Vec<Question>) {
        let reserved: Vec<Reservation> = questions
            .iter()
            .flat_map(|question| &question.addresses)
            .map(|address| self.reserved.reservation_of(address.base_local_part()))
            .collect();
        let queries: Vec<RecipientQuery<'_>> = questions
            .iter()
            .flat_map(|question| question.addresses.iter().map(|address| (address, question.size > 0)))
            .zip(&reserved)
            .map(|((address, with_quota_left), reserved)| RecipientQuery {
                address,
                with_quota_left,
                reserved: *reserved,
            })
            .collect();
        let mut facts = Vec::with_capacity(queries.len());
        for some in queries.chunks(RECIPIENTS) {
            match self.find(some).await {
                Some(found) => facts.extend(found.into_iter().map(Some)),
                None => facts.extend(some.iter().map(|_| None)),
            }
        }
        let mut facts = facts.into_iter().zip(reserved);
        for Question { addresses, size, reply } in questions {
            let judged = addresses
                .into_iter()
                .zip(&mut facts)
                .map(|(address, (facts, reserved))| {
                    let verdict = facts
                        .ok_or(RecipientRefusal::Unavailable)
                        .and_then(|facts| judge(&address, reserved, facts, size));
                    (address, verdict)
                })
                .collect();
            // A session that went away needs no answer.
            let _ = reply.send(judged);
        }
    }

    /// `None`: Postgres is away, or does not answer as it should.
    async fn find(&mut self, queries: &[RecipientQuery<'_>]) -> Option<Vec<RecipientStatus>> {
        let found = tokio::time::timeout(PATIENCE, self.reader.find(queries, self.clock.now())).await;
        let problem = match found {
            Ok(Ok(facts)) if facts.len() == queries.len() => return Some(facts),
            Ok(Ok(_)) => "an answer is missing".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!(%problem, recipients = queries.len(), "recipients could not be looked up");
        None
    }
}
