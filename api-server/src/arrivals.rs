//! Notifies subscribers of new mail, and of changes to their right to read it. A process has one
//! subscription to the bus, one poll of the stream and one timer, however many subscribers there are. The
//! poll finds messages whose hint was lost, and changes of rights.
//!
//! To miss nothing, every reader keeps this order: acquire the permit, subscribe, read the store from the
//! cursor, wait, read what arrived since. A notification is a hint: what the reader then reads decides.

mod generations;
mod registry;
mod ring;
mod sequence;
mod signal;
mod subscriber;
mod tailer;

use std::sync::{Arc, Weak};
use std::time::Duration;

use tempmail_bus::ArrivalReceiver;
use tempmail_model::clock::Clock;
use tempmail_runtime::last_success::LastSuccess;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::{Generation, Store};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub(crate) use generations::{Generations, Position};
pub(crate) use registry::Topic;
pub(crate) use ring::ArrivedMessage;
pub(crate) use signal::Notifications;
pub(crate) use subscriber::Subscriber;

use registry::Registry;
use tailer::Tailer;

/// Without a successful poll for this long, new mail and changes of rights may go unnoticed. Rights end within 5 s, so
/// from then on they are judged anew before anything is sent.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(4);

/// The subscribers of one process. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    registry: Arc<Registry>,
    last_poll: LastSuccess,
    generations: Arc<Generations>,
}

impl Arrivals {
    /// Follows the stream by `hints` and by polling the store, until `shutdown` stops or this is dropped; `generations`
    /// are those that the store has. While the stream can't be read, `readiness` reports "arrivals" as missing.
    pub(crate) fn start(
        store: &Store,
        generations: Vec<Generation>,
        hints: ArrivalReceiver,
        clock: Arc<dyn Clock>,
        readiness: Readiness,
        shutdown: &Shutdown,
    ) -> Self {
        let registry = Arc::new(Registry::new());
        let last_poll = LastSuccess::new();
        let generations = Arc::new(Generations::new(generations));
        let weak = Arc::downgrade(&registry);
        let tailer = Tailer::new(
            store,
            hints,
            Arc::clone(&clock),
            readiness,
            last_poll.clone(),
            Arc::clone(&generations),
            Weak::clone(&weak),
        );
        tokio::spawn(shutdown.stop.clone().run_until_cancelled_owned(tailer.run()));
        let ticks = tick(weak, last_poll.clone(), clock, shutdown.drain.clone());
        tokio::spawn(shutdown.stop.clone().run_until_cancelled_owned(ticks));
        Self { registry, last_poll, generations }
    }

    /// Registers a subscriber, which has no topics yet.
    pub(crate) fn register(&self) -> Subscriber {
        Subscriber::register(&self.registry)
    }

    /// The generations of the stream.
    pub(crate) fn generations(&self) -> &Generations {
        &self.generations
    }

    /// Whether the stream was not read for [`STALE_AFTER`].
    pub(crate) fn is_stale(&self) -> bool {
        self.last_poll.age() > STALE_AFTER
    }
}

/// Fires the timers; once `drain` has begun, notifies all subscribers of it, a batch per tick.
async fn tick(
    registry: Weak<Registry>,
    last_poll: LastSuccess,
    clock: Arc<dyn Clock>,
    drain: CancellationToken,
) {
    let mut ticks = interval(registry::TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut draining: Option<(u64, usize)> = None;
    loop {
        ticks.tick().await;
        let Some(registry) = registry.upgrade() else { return };
        registry.fire_due(Instant::now(), clock.now());
        metrics::gauge!("tempmail_stream_poll_age_seconds").set(last_poll.age().as_secs_f64());
        metrics::gauge!("tempmail_subscribers").set(u32::try_from(registry.len()).unwrap_or(u32::MAX));
        if drain.is_cancelled() {
            let (last, batch) = draining.unwrap_or_else(|| (0, registry.begin_drain()));
            draining = Some((registry.drain_next(last, batch).unwrap_or(last), batch));
        }
    }
}
