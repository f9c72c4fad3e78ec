//! Notifies subscribers of new mail, and of changes to their right to read it. A process has one
//! subscription to the bus, one poll of the stream and one timer, however many subscribers there are. The
//! poll finds messages whose hint was lost, and changes of rights.
//!
//! To miss nothing, every reader keeps this order: acquire the permit, subscribe, read the store from the
//! cursor, wait, read what arrived since. A notification is a hint: what the reader then reads decides.

mod registry;
mod ring;
mod sequence;
mod signal;
mod subscriber;
mod tailer;
mod timer;
mod topic;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tempmail_bus::ArrivalReceiver;
use tempmail_model::clock::Clock;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub(crate) use ring::ArrivedMessage;
pub(crate) use signal::Notifications;
pub(crate) use subscriber::Subscriber;
pub(crate) use topic::Topic;

use registry::Registry;
use tailer::Tailer;

/// The subscribers of one process. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    registry: Arc<Registry>,
    stale: Arc<AtomicBool>,
}

impl Arrivals {
    /// Follows the stream by `hints` and by polling the store, until `shutdown` stops or this is dropped.
    /// While the stream can't be read, `readiness` reports "arrivals" as missing.
    pub(crate) fn start(
        store: Store,
        hints: ArrivalReceiver,
        clock: Arc<dyn Clock>,
        readiness: Readiness,
        shutdown: &Shutdown,
    ) -> Self {
        let registry = Arc::new(Registry::new());
        let stale = Arc::new(AtomicBool::new(true));
        let weak = Arc::downgrade(&registry);
        let tailer =
            Tailer::new(store, hints, Arc::clone(&clock), readiness, Arc::clone(&stale), Weak::clone(&weak));
        tokio::spawn(shutdown.stop.clone().run_until_cancelled_owned(tailer.run()));
        let ticks = tick(weak, clock, shutdown.drain.clone());
        tokio::spawn(shutdown.stop.clone().run_until_cancelled_owned(ticks));
        Self { registry, stale }
    }

    /// Registers a subscriber, which has no topics yet.
    pub(crate) fn register(&self) -> Subscriber {
        Subscriber::register(&self.registry)
    }

    /// Whether the stream was not read for 5 s, so that new mail may go unnoticed.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed)
    }
}

/// Fires the timers; once `drain` has begun, notifies all subscribers of it, a batch per tick.
async fn tick(registry: Weak<Registry>, clock: Arc<dyn Clock>, drain: CancellationToken) {
    let mut ticks = interval(timer::TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut draining: Option<(u64, usize)> = None;
    loop {
        ticks.tick().await;
        let Some(registry) = registry.upgrade() else { return };
        registry.fire_due(Instant::now(), clock.now());
        metrics::gauge!("tempmail_subscribers").set(u32::try_from(registry.len()).unwrap_or(u32::MAX));
        if drain.is_cancelled() {
            let (last, batch) = draining.unwrap_or_else(|| (0, registry.begin_drain()));
            draining = Some((registry.drain_next(last, batch).unwrap_or(last), batch));
        }
    }
}
