//! The bus within one process.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use tempmail_model::message::Arrival;
use tokio::sync::broadcast;

use crate::bus::{ArrivalReceiver, Bus};
use crate::limit::{Attempt, FailureLimit, RateDecision, RateKey, RateLimit, check_all};
use crate::permit::{LocalPermit, Permit, PermitKey, PermitPool};

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
