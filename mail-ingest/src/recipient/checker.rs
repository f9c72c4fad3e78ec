//! Checks the recipients of sessions.

use std::sync::Arc;

use tempmail_model::address::{RecipientAddress, ReservedLocalParts};
use tempmail_model::clock::Clock;
use tempmail_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::accept_cache::AcceptCache;
use super::acceptance::Acceptance;
use super::lookup::{Lookup, LookupRequest};
use super::shared_inbox_index::SharedInboxIndex;
use crate::capacity::CapacityGate;
use crate::smtp::{PendingRecipient, RecipientRejection};

/// Maximum queued requests; a session has one at a time.
const QUEUE_LENGTH: usize = 4_096;

/// The accepted address, or the reason of the rejection.
type CheckResult = Result<RecipientAddress, RecipientRejection>;

/// Accepts or rejects recipients. Cheap to clone; its task ends with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct RecipientChecker {
    requests: mpsc::Sender<LookupRequest>,
    context: Arc<CheckContext>,
}

/// What all clones share.
#[derive(Debug)]
struct CheckContext {
    accepted: AcceptCache,
    shared_inboxes: SharedInboxIndex,
    reserved: ReservedLocalParts,
    capacity: CapacityGate,
}

impl RecipientChecker {
    /// Starts the task that queries Postgres.
    pub(crate) fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        reserved: ReservedLocalParts,
        shared_inboxes: SharedInboxIndex,
        capacity: CapacityGate,
    ) -> (Self, JoinHandle<()>) {
        let (requests, receiver) = mpsc::channel(QUEUE_LENGTH);
        let task = tokio::spawn(Lookup::new(store, clock, reserved.clone()).run(receiver));
        let context = CheckContext { accepted: AcceptCache::default(), shared_inboxes, reserved, capacity };
        (Self { requests, context: Arc::new(context) }, task)
    }

    /// Checks pipelined recipients, and returns the results in their order. `size` is what MAIL
    /// declared, or 0.
    pub(crate) async fn check(&self, recipients: Vec<PendingRecipient>, size: u64) -> Vec<CheckResult> {
        let mut unknown = Vec::new();
        let known: Vec<Option<CheckResult>> = recipients
            .into_iter()
            .map(|recipient| match self.check_in_memory(recipient, size) {
                Ok(result) => Some(result),
                Err(address) => {
                    unknown.push(address);
                    None
                }
            })
            .collect();
        let found = if unknown.is_empty() { Vec::new() } else { self.look_up(unknown, size).await };
        let mut found = found.into_iter();
        known
            .into_iter()
            .map(|result| result.or_else(|| found.next()).unwrap_or(Err(RecipientRejection::Unavailable)))
            .collect()
    }

    /// The result for a recipient that is known in memory, else the address to look up.
    fn check_in_memory(
        &self,
        recipient: PendingRecipient,
        size: u64,
    ) -> Result<CheckResult, RecipientAddress> {
        let CheckContext { accepted, shared_inboxes, reserved, capacity } = &*self.context;
        let address = match recipient {
            PendingRecipient::Address(address) => address,
            PendingRecipient::Postmaster => match capacity.postmaster() {
                Some(address) => address,
                None => return Ok(Err(RecipientRejection::Unavailable)),
            },
        };
        // The index can only accept. If shared inboxes are full, the lookup decides why to reject.
        if capacity.accepts_shared() && shared_inboxes.contains(&address, reserved) {
            return Ok(Ok(address));
        }
        match accepted.get(&address, size) {
            Some(acceptance) => Ok(self.check_capacity(address, acceptance)),
            None => Err(address),
        }
    }

    async fn look_up(&self, addresses: Vec<RecipientAddress>, size: u64) -> Vec<CheckResult> {
        let (reply, decided) = oneshot::channel();
        if self.requests.send(LookupRequest { addresses, size, reply }).await.is_err() {
            return Vec::new();
        }
        let Ok(decided) = decided.await else {
            return Vec::new();
        };
        decided
            .into_iter()
            .map(|(address, decision)| {
                let acceptance = decision?;
                self.context.accepted.insert(address.clone(), acceptance);
                self.check_capacity(address, acceptance)
            })
            .collect()
    }

    /// Applies the bounds of the installation.
    fn check_capacity(&self, address: RecipientAddress, acceptance: Acceptance) -> CheckResult {
        let capacity = &self.context.capacity;
        let accepts = if acceptance.shared { capacity.accepts_shared() } else { capacity.accepts_any() };
        if accepts { Ok(address) } else { Err(RecipientRejection::StoreFull) }
    }
}
