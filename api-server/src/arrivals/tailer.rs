//! Listens to the bus and follows the stream's counter, so that nobody waits in vain for mail
//! that another process stored or whose hint was lost.

use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempmail_model::clock::Clock;
use tempmail_model::message::Arrival;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{Store, StoreError};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, MissedTickBehavior};

use super::coverage::Coverage;
use super::registry::Registry;

/// Time between two looks at the counter: a process without hints learns of mail by them.
const TICK: Duration = Duration::from_millis(200);
/// A gap that is wider is not read: everybody is woken instead.
const GAP_MAX: i64 = 50_000;
/// A gap that is older than this is not looked for among the newest messages.
const GAP_AGE_MAX: SignedDuration = SignedDuration::from_mins(10);
/// By how much a message may be older than its commit: it waited for the database.
const COMMIT_LATE: SignedDuration = SignedDuration::from_mins(5);
/// Without a look at the stream for so long, the process can't promise to see mail.
const BLIND_AFTER: Duration = Duration::from_secs(2);

const COMPONENT: &str = "arrivals";

/// See the module.
pub(super) struct Tailer {
    store: Store,
    hints: Receiver<Arc<[Arrival]>>,
    clock: Arc<dyn Clock>,
    readiness: Readiness,
    /// Gone with the state that waiters come from; then there is nobody to wake.
    registry: Weak<Registry>,
    /// `None` until the stream was seen once.
    coverage: Option<Coverage>,
    /// Business time of the last look, for the age of a gap.
    seen: Timestamp,
    /// Process time of the last look.
    seen_at: Instant,
    blind: bool,
}

impl Tailer {
    pub(super) fn new(
        store: Store,
        hints: Receiver<Arc<[Arrival]>>,
        clock: Arc<dyn Clock>,
        readiness: Readiness,
        registry: Weak<Registry>,
    ) -> Self {
        readiness.missing(COMPONENT, "the stream was not read yet");
        let seen = clock.now();
        Self {
            store,
            hints,
            clock,
            readiness,
            registry,
            coverage: None,
            seen,
            seen_at: Instant::now(),
            blind: true,
        }
    }

    /// Wakes waiters, as long as there can be some.
    pub(super) async fn run(mut self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                hint = self.hints.recv() => match (hint, self.registry.upgrade()) {
                    (Ok(arrivals), Some(registry)) => self.told(&arrivals, &registry),
                    // What was lost is a gap: it is found at once rather than with the tick.
                    (Err(RecvError::Lagged(_)), Some(_)) => ticks.reset_immediately(),
                    (Err(RecvError::Closed), _) | (_, None) => return,
                },
                _ = ticks.tick() => match self.registry.upgrade() {
                    Some(registry) => self.look(&registry).await,
                    None => return,
                },
            }
        }
    }

    fn told(&mut self, arrivals: &[Arrival], registry: &Registry) {
        registry.wake(arrivals);
        if let Some(coverage) = &mut self.coverage {
            for arrival in arrivals {
                coverage.told(arrival.seq);
            }
        }
    }

    async fn look(&mut self, registry: &Registry) {
        match self.repair(registry).await {
            Ok(()) => {
                self.seen_at = Instant::now();
                if std::mem::take(&mut self.blind) {
                    self.readiness.ready(COMPONENT);
                }
            }
            Err(error) => {
                if !self.blind && self.seen_at.elapsed() > BLIND_AFTER {
                    self.blind = true;
                    tracing::warn!(unavailable = error.is_unavailable(), "the stream can't be read");
                    self.readiness.missing(COMPONENT, "the stream can't be read: Postgres does not answer");
                }
            }
        }
    }

    /// Wakes for what no hint told of.
    async fn repair(&mut self, registry: &Registry) -> Result<(), StoreError> {
        let now = self.clock.now();
        let position = self.store.stream_position().await?;
        // Hints of what was committed just before may be waiting: they are no gap.
        loop {
            match self.hints.try_recv() {
                Ok(arrivals) => self.told(&arrivals, registry),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        let Some(coverage) = &mut self.coverage else {
            // Mail may have come between a waiter's read and this first look.
            registry.wake_all();
            self.coverage = Some(Coverage::new(position));
            self.seen = now;
            return Ok(());
        };
        if let Some(after) = coverage.gap(position) {
            if position - after > GAP_MAX || now.duration_since(self.seen) > GAP_AGE_MAX {
                registry.wake_all();
            } else {
                let missed = self.store.list_arrivals(after, position, self.seen - COMMIT_LATE).await?;
                registry.wake(&missed);
            }
            metrics::counter!("tempmail_arrivals_repaired_total")
                .increment((position - after).unsigned_abs());
            coverage.repaired(position);
        }
        self.seen = now;
        Ok(())
    }
}
