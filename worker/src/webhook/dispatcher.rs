//! Takes lanes in hand, and keeps dead receivers from taking the room of living ones.

use std::sync::Arc;
use std::time::Duration;

use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::config::Config;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::{ClaimedWebhook, Store, StoreError};
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::JoinMap;
use uuid::Uuid;

use super::lane::Desk;
use super::sender::Sender;

/// Time between two looks for lanes that are due, where nothing tells of one.
const LOOK: Duration = Duration::from_secs(1);
/// Time between two looks at least, however much happens; as long as the last one took, where that is
/// longer: many lanes make a look dear.
const PAUSE: Duration = Duration::from_millis(10);
/// Time between two renewals of what is in hand.
const RENEW: Duration = Duration::from_secs(5);
/// Time between two measurements of what waits.
const MEASURE: Duration = Duration::from_secs(15);
/// Requests beside the first one of each lane.
const BESIDE: usize = 1_000;
/// Lanes in hand whose last attempt succeeded, or that had none.
const HEALTHY: usize = 768;
/// Lanes in hand whose last attempt failed: each sends one request, which may take its full time.
const FAILING: usize = 224;

/// Sends what waits for webhooks; one a process.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    desk: Arc<Desk>,
    bus: SharedBus,
}

/// Lanes in hand, by their webhook.
#[derive(Default)]
struct Lanes {
    healthy: JoinMap<Uuid, ()>,
    failing: JoinMap<Uuid, ()>,
}

impl Dispatcher {
    /// A dispatcher that is woken by what comes over `bus`, and opens secrets with `keys`.
    ///
    /// # Errors
    /// What `webhooks.*` names can't be read.
    pub(crate) fn new(
        config: &Config,
        store: Store,
        clock: Arc<dyn Clock>,
        bus: SharedBus,
        keys: &[MasterKey],
    ) -> anyhow::Result<Self> {
        let desk = Desk {
            holder: Uuid::new_v4(),
            store,
            clock,
            sender: Sender::new(config)?,
            secrets: WebhookSecretSealer::new(keys),
            room_beside: Arc::new(Semaphore::new(BESIDE)),
        };
        Ok(Self { desk: Arc::new(desk), bus })
    }

    /// Sends until `shutdown` drains; then lets the requests in hand end, until it stops.
    pub(crate) async fn run(self, shutdown: Shutdown) {
        let mut lanes = Lanes::default();
        tokio::select! {
            () = self.dispatch(&mut lanes, &shutdown.drain) => {}
            () = shutdown.drain.cancelled() => {}
        }
        tokio::select! {
            () = self.finish(&mut lanes) => {}
            () = shutdown.stop.cancelled() => lanes.abort().await,
        }
        // What it had in hand is free at once, not only when its time is over.
        if let Err(error) = self.desk.store.release_webhook_leases(self.desk.holder).await {
            tracing::debug!(%error, "webhooks were not released");
        }
    }

    async fn dispatch(&self, lanes: &mut Lanes, drain: &CancellationToken) {
        let mut hints = self.bus.subscribe();
        let (mut renewals, mut measurements) = (every(RENEW), every(MEASURE));
        let (mut next_look, mut soonest) = (Instant::now(), Instant::now());
        loop {
            tokio::select! {
                () = sleep_until(next_look) => {
                    let began = Instant::now();
                    if let Err(error) = self.claim(lanes, drain).await {
                        tracing::warn!(%error, "webhooks can't be looked for");
                    }
                    soonest = Instant::now() + PAUSE.max(began.elapsed());
                    next_look = soonest.max(began + LOOK);
                }
                hint = hints.recv() => match hint {
                    Ok(arrivals) if arrivals.iter().all(|arrival| arrival.tenant.is_none()) => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => next_look = next_look.min(soonest),
                    Err(RecvError::Closed) => return,
                },
                // What came for a lane while it was in hand may have been seen by nobody.
                Some(_) = lanes.healthy.join_next() => next_look = next_look.min(soonest),
                Some(_) = lanes.failing.join_next() => next_look = next_look.min(soonest),
                _ = renewals.tick() => self.renew(lanes).await,
                _ = measurements.tick() => {
                    if let Err(error) = self.measure().await {
                        tracing::debug!(%error, "what waits for webhooks was not measured");
                    }
                }
            }
        }
    }

    /// Lets the requests in hand end, and keeps their lanes until then.
    async fn finish(&self, lanes: &mut Lanes) {
        let mut renewals = every(RENEW);
        loop {
            tokio::select! {
                Some(_) = lanes.healthy.join_next() => {}
                Some(_) = lanes.failing.join_next() => {}
                _ = renewals.tick(), if !lanes.is_empty() => self.renew(lanes).await,
                else => return,
            }
        }
    }

    async fn renew(&self, lanes: &Lanes) {
        if let Err(error) = self.desk.store.renew_webhook_leases(self.desk.holder, &lanes.webhooks()).await {
            tracing::debug!(%error, "webhooks in hand were not renewed");
        }
    }

    /// Takes lanes in hand that are due, as many as there is room for.
    async fn claim(&self, lanes: &mut Lanes, drain: &CancellationToken) -> Result<(), StoreError> {
        let room = |taken: usize, of: usize| i64::try_from(of.saturating_sub(taken)).unwrap_or(0);
        let (healthy, failing) = (room(lanes.healthy.len(), HEALTHY), room(lanes.failing.len(), FAILING));
        let now = self.desk.clock.now();
        // A lane that ends meanwhile is among them, and taken at the look that follows its end.
        let in_hand = lanes.webhooks();
        let claimed =
            self.desk.store.claim_webhooks(self.desk.holder, &in_hand, healthy, failing, now).await?;
        for ClaimedWebhook { id, failing } in claimed {
            let (desk, drain) = (Arc::clone(&self.desk), drain.clone());
            let lanes = if failing { &mut lanes.failing } else { &mut lanes.healthy };
            lanes.spawn(id, async move { desk.serve(id, drain).await });
        }
        let in_hand = lanes.healthy.len() + lanes.failing.len();
        metrics::gauge!("tempmail_webhooks_in_hand").set(gauge(in_hand));
        Ok(())
    }

    /// Sets the gauges of what waits, for all processes.
    async fn measure(&self) -> Result<(), StoreError> {
        let backlog = self.desk.store.webhook_backlog().await?;
        let age =
            backlog.oldest.map_or(0.0, |oldest| self.desk.clock.now().duration_since(oldest).as_secs_f64());
        metrics::gauge!("tempmail_webhooks_waiting").set(gauge(backlog.webhooks.unsigned_abs()));
        metrics::gauge!("tempmail_webhook_oldest_waiting_seconds").set(age.max(0.0));
        Ok(())
    }
}

impl Lanes {
    fn is_empty(&self) -> bool {
        self.healthy.is_empty() && self.failing.is_empty()
    }

    fn webhooks(&self) -> Vec<Uuid> {
        self.healthy.keys().chain(self.failing.keys()).copied().collect()
    }

    async fn abort(&mut self) {
        self.healthy.shutdown().await;
        self.failing.shutdown().await;
    }
}

/// After a stand-still no burst.
fn every(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

fn gauge(count: impl TryInto<u32>) -> f64 {
    count.try_into().unwrap_or(u32::MAX).into()
}
