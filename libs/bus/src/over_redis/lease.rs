//! Places that are held in Redis too, as the callers see them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::commands::COMMAND_TIMEOUT;
use crate::PermitKey;

/// Longest that a caller waits for the desk: a command's time, and some for what is before it.
const WAIT: Duration = COMMAND_TIMEOUT.saturating_add(Duration::from_millis(250));

/// What the desk is asked. An operation that is dropped was not done, and its caller goes on
/// without Redis.
#[derive(Debug)]
pub(super) enum Operation {
    /// Take one of `most` places under `key`; the answer is whether there was one.
    Take { number: u64, key: PermitKey, most: usize, answer: oneshot::Sender<bool> },
    /// Give a place back; `done` is dropped then.
    Free { number: u64, key: PermitKey, done: Option<oneshot::Sender<()>> },
    /// Give all places back, and end; `done` is dropped then.
    Leave { done: oneshot::Sender<()> },
}

/// The places that this process holds, by number.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<u64, PermitKey>>);

impl Held {
    pub(super) fn all(&self) -> Vec<(u64, PermitKey)> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|(&number, &key)| (number, key)).collect()
    }

    fn insert(&self, number: u64, key: PermitKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, key);
    }

    fn remove(&self, number: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&number).is_some()
    }
}

/// The way to the desk. Its queue needs no bound of its own: an operation is there for a request
/// that waits, or for a place that was held.
#[derive(Debug)]
pub(super) struct Leases {
    held: Arc<Held>,
    desk: mpsc::UnboundedSender<Operation>,
    next: AtomicU64,
}

impl Leases {
    /// With the desk's ends of both.
    pub(super) fn new() -> (Self, Arc<Held>, mpsc::UnboundedReceiver<Operation>) {
        let held = Arc::new(Held::default());
        let (desk, operations) = mpsc::unbounded_channel();
        (Self { held: held.clone(), desk, next: AtomicU64::new(0) }, held, operations)
    }

    /// Takes one of `most` places under `key`; `None` where Redis says that all are taken. Where
    /// it does not say, the place is had.
    pub(super) async fn take(&self, key: PermitKey, most: usize) -> Option<Lease> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Held from now on: it is given back if this future is dropped, and whoever connects
        // anew before Redis answers adds it.
        self.held.insert(number, key);
        let lease = Lease { number, key, held: self.held.clone(), desk: self.desk.clone() };
        let (answer, answered) = oneshot::channel();
        let _ = self.desk.send(Operation::Take { number, key, most, answer });
        match timeout(WAIT, answered).await {
            // Given back like a place that was had: whoever connected anew meanwhile added it.
            Ok(Ok(false)) => None,
            Ok(Ok(true) | Err(_)) | Err(_) => Some(lease),
        }
    }

    /// Gives back all that is held, when nobody is to take any more.
    pub(super) async fn close(&self) {
        let (done, left) = oneshot::channel();
        if self.desk.send(Operation::Leave { done }).is_ok() {
            let _ = timeout(WAIT, left).await;
        }
    }
}

/// A place in Redis, until this is given back or dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    number: u64,
    key: PermitKey,
    held: Arc<Held>,
    desk: mpsc::UnboundedSender<Operation>,
}

impl Lease {
    /// Gives the place back at once, before any `take` that follows; the future ends when Redis
    /// has done it, or does not answer.
    pub(crate) fn release(self) -> impl Future<Output = ()> {
        let (done, freed) = oneshot::channel();
        self.free(Some(done));
        async move {
            let _ = timeout(WAIT, freed).await;
        }
    }

    fn free(&self, done: Option<oneshot::Sender<()>>) {
        if self.held.remove(self.number) {
            let _ = self.desk.send(Operation::Free { number: self.number, key: self.key, done });
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.free(None);
    }
}
