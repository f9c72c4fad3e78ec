//! The bus within one process, and its concurrency permits: how many long-polls, streams and sockets may be open
//! under one key.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use tempmail_admission::{Holder, Share, Shares};
use tempmail_model::message::Arrival;
use tokio::sync::broadcast;
use uuid::Uuid;

use crate::limit::{Attempt, FailureLimit, RateDecision, RateKey, RateLimit, check_all};
use crate::{ArrivalReceiver, Bus};

/// What is counted, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermitKey {
    /// Long-polls of an API token, by its id.
    TokenWaits(Uuid),
    /// Server-sent event streams of an API token, by its id.
    TokenStreams(Uuid),
    /// WebSockets of a mailbox.
    MailboxSockets(Uuid),
    /// Long-polls of one tenant on one address, so that no tenant can lock another out.
    AddressWaits {
        /// The tenant of the token.
        tenant: Uuid,
        /// The key of the exact address.
        address: Uuid,
    },
}

/// A permit to keep one request open, until it is released or dropped.
#[derive(Debug)]
#[must_use = "the permit is released when it is dropped"]
pub struct Permit(Box<dyn AcquiredPermit>);

/// What a bus hands out as a [`Permit`]. Dropping it releases it in the background.
pub(crate) trait AcquiredPermit: Debug + Send + Sync {
    /// Releases it; the future ends when every process may acquire it.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;
}

impl Permit {
    pub(crate) fn new(permit: impl AcquiredPermit + 'static) -> Self {
        Self(Box::new(permit))
    }

    /// Releases the permit, and returns when every process may acquire it: a client that is answered after
    /// this can't be refused because of it. Waits for Redis for less than a second.
    pub async fn release(self) {
        self.0.release().await;
    }
}

/// The permits in use by this process.
#[derive(Debug, Clone)]
pub(crate) struct PermitPool(Shares<PermitKey>);

impl PermitPool {
    pub(crate) fn new() -> Self {
        Self(Shares::new(usize::MAX))
    }

    /// One of `max` permits of a key.
    pub(crate) fn try_acquire(&self, key: PermitKey, max: usize) -> Option<LocalPermit> {
        self.0.try_acquire([Holder { key, cap: max }], 1).ok().map(LocalPermit)
    }
}

/// A permit of this process, until it is dropped.
#[derive(Debug)]
pub(crate) struct LocalPermit(Share<PermitKey>);

impl AcquiredPermit for LocalPermit {
    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        drop(self.0);
        ready(()).boxed()
    }
}

/// Batches that a subscriber may be behind before it loses the oldest and has to repair.
const ARRIVALS_BEHIND: usize = 1024;

/// A bus whose subscribers, permits and limits are those of this process.
#[derive(Debug)]
pub struct LocalBus {
    arrivals: broadcast::Sender<Arc<[Arrival]>>,
    permits: PermitPool,
}

impl LocalBus {
    /// A bus without subscribers, and with every permit available.
    pub fn new() -> Self {
        Self { arrivals: broadcast::Sender::new(ARRIVALS_BEHIND), permits: PermitPool::new() }
    }

    /// Sends a batch, which may be empty, to subscribers.
    pub(crate) fn deliver(&self, arrivals: Arc<[Arrival]>) {
        // Fails without subscribers: a process may have no readers.
        let _ = self.arrivals.send(arrivals);
    }

    /// Acquires a permit of this process.
    pub(crate) fn try_acquire(&self, key: PermitKey, max: usize) -> Option<LocalPermit> {
        self.permits.try_acquire(key, max)
    }
}

impl Default for LocalBus {
    fn default() -> Self {
        Self::new()
    }
}

impl Bus for LocalBus {
    fn publish(&self, arrivals: Vec<Arrival>) {
        if !arrivals.is_empty() {
            self.deliver(arrivals.into());
        }
    }

    fn subscribe(&self) -> ArrivalReceiver {
        self.arrivals.subscribe()
    }

    fn acquire(&self, key: PermitKey, max: usize) -> BoxFuture<'_, Option<Permit>> {
        ready(self.try_acquire(key, max).map(Permit::new)).boxed()
    }

    fn check_rates<'a>(
        &'a self,
        counted: Vec<(&'a RateLimit, RateKey)>,
    ) -> BoxFuture<'a, Option<RateDecision>> {
        ready(check_all(&counted)).boxed()
    }

    fn begin_attempt<'a>(
        &'a self,
        limit: &'a FailureLimit,
        key: RateKey,
    ) -> BoxFuture<'a, Result<Attempt, Duration>> {
        ready(limit.begin_attempt(key)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_a_permit_that_is_dropped() {
        let pool = PermitPool::new();
        let key = PermitKey::AddressWaits { tenant: Uuid::from_u128(1), address: Uuid::from_u128(2) };
        let first = pool.try_acquire(key, 2);
        let second = pool.try_acquire(key, 2);
        assert!(first.is_some() && second.is_some());
        assert!(pool.try_acquire(key, 2).is_none());
        drop(first);
        assert!(pool.try_acquire(key, 2).is_some());
        drop(second);
        assert_eq!(pool.0.held(), 0);
    }

    #[test]
    fn counts_each_key_by_itself() {
        let pool = PermitPool::new();
        let id = Uuid::from_u128(1);
        let _wait = pool.try_acquire(PermitKey::TokenWaits(id), 1).unwrap();
        let _stream = pool.try_acquire(PermitKey::TokenStreams(id), 1).unwrap();
        let _address = pool.try_acquire(PermitKey::AddressWaits { tenant: id, address: id }, 1).unwrap();
        assert!(pool.try_acquire(PermitKey::TokenWaits(id), 1).is_none());
        assert!(pool.try_acquire(PermitKey::TokenWaits(Uuid::from_u128(2)), 0).is_none());
    }
}
