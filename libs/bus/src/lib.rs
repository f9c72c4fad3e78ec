//! What the processes of an installation tell each other: arrivals, places and rates.
//!
//! Nothing here is the truth. Losing an arrival costs latency (readers repair from the store);
//! losing places or rates costs fairness for a moment. So a bus that loses its connection goes
//! on by itself, and no caller learns of it by an error.

mod failure;
mod in_process;
mod key;
mod over_redis;
mod rate;
mod slot;

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tempmail_model::message::Arrival;
use tokio::sync::broadcast;

pub use failure::{Attempt, FailureLimit};
pub use in_process::LocalBus;
pub use key::RateKey;
pub use over_redis::{InvalidRedisUrl, RedisBus};
pub use rate::{RateDecision, RateLimit};
pub use slot::{Permit, PermitKey};

/// Batches of arrivals from all processes. One that falls 1,024 batches behind is told so
/// (`RecvError::Lagged`) and has to repair from the store. An empty batch says that some may have
/// been lost: look at the store now.
pub type ArrivalReceiver = broadcast::Receiver<Arc<[Arrival]>>;

/// The bus as roles hold it. Clones are one bus.
pub type SharedBus = Arc<dyn Bus>;

/// Between the processes of an installation, or within one of them.
pub trait Bus: Debug + Send + Sync {
    /// Tells every subscriber of messages that are committed. Never waits and never fails: a
    /// hint that is lost is found by the readers' own look at the stream.
    fn publish(&self, arrivals: Vec<Arrival>);

    /// All that is published from now on, also by this process.
    fn subscribe(&self) -> ArrivalReceiver;

    /// Takes one of `max` places under `key`; `None` where all are taken.
    fn acquire(&self, key: PermitKey, max: usize) -> BoxFuture<'_, Option<Permit>>;

    /// Counts one request under `key`, unless it is over the limit.
    fn check_rate<'a>(&'a self, limit: &'a RateLimit, key: RateKey) -> BoxFuture<'a, RateDecision>;

    /// Counts one failure under `key` beforehand; [`Attempt::succeeded`] takes it back.
    ///
    /// # Errors
    /// Time until the key's window is over, where it has as many as it may.
    fn begin_attempt<'a>(
        &'a self,
        limit: &'a FailureLimit,
        key: RateKey,
    ) -> BoxFuture<'a, Result<Attempt<'a>, std::time::Duration>>;

    /// Gives back what this process holds for the others to take, and ends what runs in the
    /// background. The last call, at the end of a process; it takes less than a second.
    fn close(&self) -> BoxFuture<'_, ()> {
        futures_util::future::ready(()).boxed()
    }
}
