//! Wakes those who wait for mail. One subscription to the bus a process, however many wait;
//! and one look at the stream's counter each tick, which finds what no hint told of.
//!
//! Order for every reader, so that nothing is missed: take the slot, register, read from the
//! cursor, wait, read again. A wake is a hint: what is read then decides.

mod coverage;
mod registry;
mod rights;
mod tailer;

use std::sync::Arc;

use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;

pub use registry::{Scope, Waiter};

use registry::Registry;
use tailer::Tailer;

/// The waiters of one process. Cheap to clone; clones are one.
#[derive(Debug, Clone)]
pub struct Arrivals {
    registry: Arc<Registry>,
}

impl Arrivals {
    /// Subscribes to the bus and starts to watch the stream and the rights of those who
    /// wait, until `shutdown` stops or this is dropped. What it can't see is said in `readiness` ("arrivals").
    pub fn start(
        store: Store,
        bus: &SharedBus,
        clock: Arc<dyn Clock>,
        readiness: Readiness,
        shutdown: &Shutdown,
    ) -> Self {
        let registry = Arc::new(Registry::default());
        let hints = bus.subscribe();
        let tailer =
            Tailer::new(store.clone(), hints, Arc::clone(&clock), readiness, Arc::downgrade(&registry));
        tokio::spawn(shutdown.stop.clone().run_until_cancelled_owned(tailer.run()));
        let rights = rights::watch(store, clock, Arc::downgrade(&registry));
        tokio::spawn(shutdown.stop.clone().run_until_cancelled_owned(rights));
        Self { registry }
    }

    /// Registers a waiter for everything that arrives under any of `scopes` from now on.
    pub fn register(&self, scopes: impl IntoIterator<Item = Scope>) -> Waiter {
        Registry::register(&self.registry, scopes)
    }
}
