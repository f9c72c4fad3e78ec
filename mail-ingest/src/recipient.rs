//! The decision at RCPT. Addresses that certainly are shared inboxes are found in memory. For all
//! others one task queries Postgres for the waiting recipients of all sessions together, so that
//! they cost one round trip. An accepted recipient is cached for five seconds, a rejected one is
//! not. The owner of the mail is decided later, by the statement that stores it.

mod acceptance;
mod lookup;
mod rejection_delay;
mod shared_inbox_index;

use std::sync::Arc;
use std::time::Duration;

use tempmail_model::address::{RecipientAddress, ReservedLocalParts};
use tempmail_model::clock::Clock;
use tempmail_runtime::liveness::Liveness;
use tempmail_store::Store;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use self::acceptance::{AcceptCache, Acceptance};
use self::lookup::{DecidedRecipient, Lookup, LookupReply, LookupRequest};
use crate::capacity::CapacityGate;
use crate::smtp::{AcceptedRecipient, PendingRecipient, RecipientRejection};

pub(crate) use rejection_delay::RejectionDelay;
pub(crate) use shared_inbox_index::SharedInboxIndex;

/// Maximum queued requests; a session has one at a time. What does not fit is not deferred with what is queued.
const QUEUE_LENGTH: usize = 16_384;
/// Sessions that subtract what expired from the usage of full mailboxes at the same time.
const EXPIRIES_AT_ONCE: usize = 2;
/// How long such a session may wait for its turn and for Postgres.
const EXPIRY_TIMEOUT: Duration = Duration::from_secs(2);

/// The accepted recipient, or the reason of the rejection.
type CheckResult = Result<AcceptedRecipient, RecipientRejection>;

/// Accepts or rejects recipients. Cheap to clone; its task ends with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct RecipientChecker {
    requests: mpsc::Sender<LookupRequest>,
    context: Arc<CheckContext>,
}

/// What all clones share.
struct CheckContext {
    accepted: AcceptCache,
    shared_inboxes: SharedInboxIndex,
    reserved: ReservedLocalParts,
    capacity: CapacityGate,
    store: Store,
    clock: Arc<dyn Clock>,
    expiries: Semaphore,
}

impl std::fmt::Debug for CheckContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckContext").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl RecipientChecker {
    /// Starts the task that queries Postgres.
    pub(crate) fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        reserved: ReservedLocalParts,
        shared_inboxes: SharedInboxIndex,
        capacity: CapacityGate,
        liveness: &Liveness,
    ) -> (Self, JoinHandle<()>) {
        let (requests, receiver) = mpsc::channel(QUEUE_LENGTH);
        let lookup = Lookup::new(store.clone(), Arc::clone(&clock), reserved.clone(), liveness);
        let task = tokio::spawn(lookup.run(receiver));
        let context = CheckContext {
            accepted: AcceptCache::default(),
            shared_inboxes,
            reserved,
            capacity,
            store,
            clock,
            expiries: Semaphore::new(EXPIRIES_AT_ONCE),
        };
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
        let CheckContext { accepted, shared_inboxes, reserved, capacity, .. } = &*self.context;
        let address = match recipient {
            PendingRecipient::Address(address) => address,
            PendingRecipient::Postmaster => match capacity.postmaster() {
                Some(address) => address,
                None => return Ok(Err(RecipientRejection::Unavailable)),
            },
        };
        // The index can only accept. If mail without a tenant has no capacity, the lookup decides why to reject.
        if capacity.accepts_free() && shared_inboxes.contains(&address, reserved) {
            return Ok(Ok(AcceptedRecipient { address, tenant: None }));
        }
        match accepted.get(&address, size) {
            Some(acceptance) => Ok(self.check_capacity(address, acceptance)),
            None => Err(address),
        }
    }

    /// Looks recipients up; those whose mailbox is full once more, after what expired was subtracted from its usage.
    async fn look_up(&self, addresses: Vec<RecipientAddress>, size: u64) -> Vec<CheckResult> {
        let mut decided = self.request(addresses, size).await;
        let mailboxes: Vec<Uuid> = decided.iter().filter_map(|recipient| recipient.full_mailbox).collect();
        if !mailboxes.is_empty() && self.expire_usage(&mailboxes).await {
            let full = decided.iter().filter(|recipient| recipient.full_mailbox.is_some());
            let full = full.map(|recipient| recipient.address.clone()).collect();
            let mut again = self.request(full, size).await.into_iter();
            for recipient in decided.iter_mut().filter(|recipient| recipient.full_mailbox.is_some()) {
                recipient.decision =
                    again.next().map_or(Err(RecipientRejection::Unavailable), |again| again.decision);
            }
        }
        decided
            .into_iter()
            .map(|DecidedRecipient { address, decision, .. }| {
                let acceptance = decision?;
                self.context.accepted.insert(address.clone(), acceptance);
                self.check_capacity(address, acceptance)
            })
            .collect()
    }

    /// The decisions of the task; none if it has ended.
    async fn request(&self, addresses: Vec<RecipientAddress>, size: u64) -> LookupReply {
        let (reply, decided) = oneshot::channel();
        if self.requests.send(LookupRequest { addresses, size, reply }).await.is_err() {
            return Vec::new();
        }
        decided.await.unwrap_or_default()
    }

    /// Subtracts what expired from the usage of mailboxes; whether that was done. Not by the task, for which all
    /// recipients wait.
    async fn expire_usage(&self, mailboxes: &[Uuid]) -> bool {
        let CheckContext { store, clock, expiries, .. } = &*self.context;
        let expiring = async {
            let _permit = expiries.acquire().await;
            store.expire_usage(mailboxes, clock.now()).await
        };
        match timeout(EXPIRY_TIMEOUT, expiring).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the usage of a full mailbox can't be read");
                false
            }
            Err(_) => false,
        }
    }

    /// Applies the bounds of the parts of the installation.
    fn check_capacity(&self, address: RecipientAddress, acceptance: Acceptance) -> CheckResult {
        let capacity = &self.context.capacity;
        let accepts =
            if acceptance.tenant.is_some() { capacity.accepts_tenants() } else { capacity.accepts_free() };
        if accepts {
            Ok(AcceptedRecipient { address, tenant: acceptance.tenant })
        } else {
            Err(RecipientRejection::StoreFull)
        }
    }
}
