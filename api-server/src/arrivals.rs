//! Wakes those who wait for mail. One subscription to the bus a process, however many wait; one
//! look at the stream each tick, which finds what no hint told of, and what ended somebody's
//! rights; and one timer for all of them.
//!
//! Order for every reader, so that nothing is missed: take the slot, listen, read the store from
//! the cursor, wait, read what came since. A wake is a hint: what is read then decides.

mod registry;
mod ring;
mod sequence;
mod signal;
mod tailer;
mod timer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tempmail_bus::ArrivalReceiver;
use tempmail_model::clock::Clock;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub use registry::{Topic, Waiter};
pub use ring::Arrived;
pub use signal::Woken;

use registry::Registry;
use tailer::Tailer;

/// The waiters of one process. Cheap to clone; clones are one.
#[derive(Debug, Clone)]
pub struct Arrivals {
    registry: Arc<Registry>,
    blind: Arc<AtomicBool>,
}

impl Arrivals {
    /// Follows the stream by `hints` and by looks at the store, until `shutdown` stops or this is
    /// dropped. What it can't see is said in `readiness` ("arrivals").
    pub fn start(
        store: Store,
        hints: ArrivalReceiver,
        clock: Arc<dyn Clock>,
        readiness: Readiness,
        shutdown: &Shutdown,
    ) -> Self {
        let registry = Arc::new(Registry::new());
        let blind = Arc::new(AtomicBool::new(true));
        let waiting = Arc::downgrade(&registry);
        let tailer = Tailer::new(
            store,
            hints,
            Arc::clone(&clock),
            readiness,
            Arc::clone(&blind),
            Weak::clone(&waiting),
        );
        tokio::spawn(shutdown.stop.clone().run_until_cancelled_owned(tailer.run()));
        let ticks = tick(waiting, clock, shutdown.drain.clone());
        tokio::spawn(shutdown.stop.clone().run_until_cancelled_owned(ticks));
        Self { registry, blind }
    }

    /// Registers a waiter, which listens to nothing yet.
    pub fn register(&self) -> Waiter {
        Registry::register(&self.registry)
    }

    /// Whether the process has lost sight of new mail: it has not seen the stream for 5 s.
    pub fn is_blind(&self) -> bool {
        self.blind.load(Ordering::Relaxed)
    }
}

/// Wakes those whose time has come, and once `drain` has begun everybody, in turn.
async fn tick(registry: Weak<Registry>, clock: Arc<dyn Clock>, drain: CancellationToken) {
    let mut ticks = interval(timer::TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut draining: Option<(u64, usize)> = None;
    loop {
        ticks.tick().await;
        let Some(registry) = registry.upgrade() else { return };
        registry.tick(Instant::now(), clock.now());
        metrics::gauge!("tempmail_waiters").set(u32::try_from(registry.len()).unwrap_or(u32::MAX));
        if drain.is_cancelled() {
            let (last, pace) = draining.unwrap_or_else(|| (0, registry.begin_drain()));
            draining = Some((registry.drain_after(last, pace).unwrap_or(last), pace));
        }
    }
}
