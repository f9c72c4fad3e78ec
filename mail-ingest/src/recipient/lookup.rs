//! The task that queries Postgres: one connection, and one statement at a time for all that waits.

use std::sync::Arc;
use std::time::Duration;

use tempmail_model::address::{RecipientAddress, Reservation, ReservedLocalParts};
use tempmail_model::clock::Clock;
use tempmail_store::{RecipientQuery, RecipientReader, RecipientStatus, Store};
use tokio::sync::{mpsc, oneshot};

use super::acceptance::{Acceptance, decide};
use crate::smtp::RecipientRejection;

/// Maximum requests that are handled together.
const REQUESTS_MAX: usize = 256;
/// Maximum recipients of a statement.
const STATEMENT_RECIPIENTS_MAX: usize = 1_000;
/// A statement that takes longer counts as failed, and the recipients are deferred.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The recipients of a request with the decision on each.
pub(super) type LookupReply = Vec<(RecipientAddress, Result<Acceptance, RecipientRejection>)>;

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
}

impl Lookup {
    pub(super) fn new(store: Store, clock: Arc<dyn Clock>, reserved: ReservedLocalParts) -> Self {
        Self { reader: RecipientReader::new(store), clock, reserved }
    }

    /// Runs until all senders are dropped.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<LookupRequest>) {
        let mut requests = Vec::with_capacity(REQUESTS_MAX);
        while queue.recv_many(&mut requests, REQUESTS_MAX).await > 0 {
            self.handle(std::mem::take(&mut requests)).await;
        }
    }

    async fn handle(&mut self, requests: Vec<LookupRequest>) {
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
                .map(|(address, (status, reserved))| {
                    let decision = status
                        .ok_or(RecipientRejection::Unavailable)
                        .and_then(|status| decide(&address, reserved, status, size));
                    (address, decision)
                })
                .collect();
            // The session may have ended.
            let _ = reply.send(decided);
        }
    }

    /// The statuses of the recipients; `None` if Postgres does not return them.
    async fn find(&mut self, queries: &[RecipientQuery<'_>]) -> Option<Vec<RecipientStatus>> {
        let found =
            tokio::time::timeout(STATEMENT_TIMEOUT, self.reader.find(queries, self.clock.now())).await;
        let problem = match found {
            Ok(Ok(statuses)) if statuses.len() == queries.len() => return Some(statuses),
            Ok(Ok(_)) => "a recipient is missing in the result".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "Postgres does not answer in time".to_owned(),
        };
        tracing::warn!(%problem, recipients = queries.len(), "recipients could not be looked up");
        None
    }
}
