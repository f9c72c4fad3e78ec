//! What the processes of an installation share: arrivals of mail, concurrency permits, rate limits and
//! failure limits.
//!
//! Nothing here is durable. A lost arrival costs latency (readers repair from the store); a lost permit or
//! counter costs fairness for a moment. So a bus that loses its connection falls back to the limits of its
//! own process, and callers never see an error.

mod limit;
mod local;
mod redis;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use tempmail_model::message::Arrival;
use tokio::sync::broadcast;

pub use self::redis::{InvalidRedisUrl, RedisBus};
pub use limit::{Attempt, FailureLimit, RateDecision, RateKey, RateLimit};
pub use local::{LocalBus, Permit, PermitKey};

/// Batches of arrivals from all processes. A receiver that falls 1,024 batches behind gets
/// `RecvError::Lagged` and has to repair from the store. An empty batch says that some may have been lost:
/// read the store now.
pub type ArrivalReceiver = broadcast::Receiver<Arc<[Arrival]>>;

/// The bus as roles hold it. Clones share one bus.
pub type SharedBus = Arc<dyn Bus>;

/// Connects the processes of an installation, or the parts of a single process.
pub trait Bus: Debug + Send + Sync {
    /// Announces committed messages to every subscriber. Never waits and never fails: readers find what was
    /// lost when they poll the stream.
    fn publish(&self, arrivals: Vec<Arrival>);

    /// Receives everything that is published from now on, by this process too.
    fn subscribe(&self) -> ArrivalReceiver;

    /// Acquires one of `max` permits of `key`; `None` if all of them are in use.
    fn acquire(&self, key: PermitKey, max: usize) -> BoxFuture<'_, Option<Permit>>;

    /// Counts one request under `key`, unless that would exceed the limit.
    fn check_rate<'a>(&'a self, limit: &'a RateLimit, key: RateKey) -> BoxFuture<'a, RateDecision> {
        let decided = self.check_rates(vec![(limit, key)]);
        async { decided.await.expect("one is counted") }.boxed()
    }

    /// Counts one request under each of these keys, unless that would exceed the limit of one: the decision for that,
    /// or else for the first; `None` without any. Those after one that is exceeded do not count it.
    fn check_rates<'a>(
        &'a self,
        counted: Vec<(&'a RateLimit, RateKey)>,
    ) -> BoxFuture<'a, Option<RateDecision>>;

    /// Counts one failure under `key` in advance; [`Attempt::uncount`] takes it back.
    ///
    /// # Errors
    /// `key` has reached the limit: the time until its window ends.
    fn begin_attempt<'a>(
        &'a self,
        limit: &'a FailureLimit,
        key: RateKey,
    ) -> BoxFuture<'a, Result<Attempt, Duration>>;

    /// Releases the permits of this process for other processes, and ends background tasks. The last call, at
    /// the end of a process; it takes less than a second.
    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}
