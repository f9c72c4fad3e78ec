//! The bus of one process, which nobody else hears.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use tempmail_model::message::Arrival;
use tokio::sync::broadcast;

use crate::slot::{Place, Places};
use crate::{
    ArrivalReceiver, Attempt, Bus, FailureLimit, Permit, PermitKey, RateDecision, RateKey, RateLimit,
};

/// Batches a subscriber may be behind before it loses the oldest and has to repair.
const ARRIVALS_BEHIND: usize = 1024;

/// See the module.
#[derive(Debug)]
pub struct LocalBus {
    arrivals: broadcast::Sender<Arc<[Arrival]>>,
    places: Places,
}

impl LocalBus {
    /// A bus without subscribers, and with every place free.
    pub fn new() -> Self {
        Self { arrivals: broadcast::Sender::new(ARRIVALS_BEHIND), places: Places::default() }
    }

    /// Gives subscribers a batch, which may be empty.
    pub(crate) fn deliver(&self, arrivals: Arc<[Arrival]>) {
        // No subscriber is no error: a process may have no readers.
        let _ = self.arrivals.send(arrivals);
    }

    /// Takes a place of this process.
    pub(crate) fn place(&self, key: PermitKey, max: usize) -> Option<Place> {
        self.places.try_take(key, max)
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
        ready(self.place(key, max).map(Permit::new)).boxed()
    }

    fn check_rate<'a>(&'a self, limit: &'a RateLimit, key: RateKey) -> BoxFuture<'a, RateDecision> {
        ready(limit.check(key)).boxed()
    }

    fn begin_attempt<'a>(
        &'a self,
        limit: &'a FailureLimit,
        key: RateKey,
    ) -> BoxFuture<'a, Result<Attempt<'a>, Duration>> {
        ready(limit.begin(key)).boxed()
    }
}
