//! The task that queries Postgres: one connection, and one statement at a time for all that waits. Where Postgres
//! falls silent, recipients that were queued meanwhile are deferred with those of the statement: no session waits for
//! more than one such time.

use std::sync::Arc;

use tempmail_model::address::{RecipientAddress, Reservation, ReservedLocalParts};
use tempmail_model::clock::Clock;
use tempmail_runtime::liveness::{Liveness, TaskPulse};
use tempmail_store::{RecipientMailbox, RecipientQuery, RecipientReader, RecipientStatus, Store};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::acceptance::{Acceptance, decide};
use crate::smtp::RecipientRejection;

/// Maximum requests that are handled together.
const REQUESTS_MAX: usize = 256;
/// Maximum recipients of a statement.
const STATEMENT_RECIPIENTS_MAX: usize = 1_000;

/// What the task is called in `/livez`.
const TASK: &str = "recipients";

/// The recipients of a request with the decision on each.
pub(super) type LookupReply = Vec<DecidedRecipient>;

/// A recipient with the decision on it.
#[derive(Debug)]
pub(super) struct DecidedRecipient {
    pub(super) address: RecipientAddress,
    pub(super) decision: Result<Acceptance, RecipientRejection>,
    /// The mailbox that is full, if it is: by the stored sum, which may still count expired mail.
    pub(super) full_mailbox: Option<Uuid>,
}

impl DecidedRecipient {
    fn new(
        address: RecipientAddress,
        reserved: Reservation,
        status: Option<RecipientStatus>,
        size: u64,
    ) -> Self {
        let Some(status) = status else {
            return Self { address, decision: Err(RecipientRejection::Unavailable), full_mailbox: None };
        };
        let decision = decide(&address, reserved, status, size);
        let full_mailbox = match status {
            RecipientStatus::Served { mailbox: RecipientMailbox::Present { id, .. }, .. }
                if decision == Err(RecipientRejection::MailboxFull) =>
            {
                Some(id)
            }
            _ => None,
        };
        Self { address, decision, full_mailbox }
    }
}

/// The recipients of a session that need a lookup.
#[derive(Debug)]
pub(super) struct LookupRequest {
    pub(super) addresses: Vec<RecipientAddress>,
    /// The size that MAIL declared, or 0.
    pub(super) size: u64,
    pub(super) reply: oneshot::Sender<LookupReply>,
}

/// The state of the task.
pub(super) struct Lookup {
    reader: RecipientReader,
    clock: Arc<dyn Clock>,
    reserved: ReservedLocalParts,
    pulse: TaskPulse,
    /// Whether the last statement waited for Postgres as long as it may.
    silent: bool,
}

impl Lookup {
    pub(super) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        reserved: ReservedLocalParts,
        liveness: &Liveness,
    ) -> Self {
        let pulse = liveness.watch(TASK);
        Self { reader: RecipientReader::new(store), clock, reserved, pulse, silent: false }
    }

    /// Runs until all senders are dropped.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<LookupRequest>) {
        let mut requests = Vec::with_capacity(REQUESTS_MAX);
        while queue.recv_many(&mut requests, REQUESTS_MAX).await > 0 {
            self.handle(std::mem::take(&mut requests)).await;
            if std::mem::take(&mut self.silent) {
                // A request without a reply is deferred.
                while queue.try_recv().is_ok() {}
            }
        }
    }

    async fn handle(&mut self, requests: Vec<LookupRequest>) {
        let _work = self.pulse.begin();
        let reservations: Vec<Reservation> = requests
            .iter()
            .flat_map(|request| &request.addresses)
            .map(|address| self.reserved.reservation_of(address.base_local_part()))
            .collect();
        let queries: Vec<RecipientQuery<'_>> = requests
            .iter()
            .flat_map(|request| request.addresses.iter().map(|address| (address, request.size > 0)))
            .zip(&reservations)
            .map(|((address, with_quota_left), reserved)| RecipientQuery {
                address,
                with_quota_left,
                reserved: *reserved,
            })
            .collect();
        let mut statuses = Vec::with_capacity(queries.len());
        for chunk in queries.chunks(STATEMENT_RECIPIENTS_MAX) {
            match self.find(chunk).await {
                Some(found) => statuses.extend(found.into_iter().map(Some)),
                None => statuses.extend(chunk.iter().map(|_| None)),
            }
        }
        let mut statuses = statuses.into_iter().zip(reservations);
        for LookupRequest { addresses, size, reply } in requests {
            let decided = addresses
                .into_iter()
                .zip(&mut statuses)
                .map(|(address, (status, reserved))| DecidedRecipient::new(address, reserved, status, size))
                .collect();
            // The session may have ended.
            let _ = reply.send(decided);
        }
    }

    /// The statuses of the recipients; `None` if Postgres does not return them.
    async fn find(&mut self, queries: &[RecipientQuery<'_>]) -> Option<Vec<RecipientStatus>> {
        if self.silent {
            return None;
        }
        let problem = match self.reader.find(queries, self.clock.now()).await {
            Ok(statuses) if statuses.len() == queries.len() => return Some(statuses),
            Ok(_) => "a recipient is missing in the result".to_owned(),
            Err(error) => {
                self.silent = error.is_silent();
                error.to_string()
            }
        };
        tracing::warn!(%problem, recipients = queries.len(), "recipients could not be looked up");
        None
    }
}
