//! Takes lanes in hand, and keeps dead receivers from taking the room of living ones.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use jiff::Timestamp;
use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_model::sealed::SecretSealer;
use tempmail_runtime::config::Config;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::{ClaimedWebhook, Store, StoreError};
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinError;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::JoinMap;
use uuid::Uuid;

use super::lane::{Desk, Left};
use super::sender::Sender;

/// Time between two looks for lanes that are due, where nothing tells of one.
const LOOK: Duration = Duration::from_secs(1);
/// Time between two looks at least, however much happens,
const PAUSE: Duration = Duration::from_millis(20);
/// and as a multiple of the time that the last one took: many lanes make a look dear.
const PAUSE_FACTOR: u32 = 4;
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
    healthy: JoinMap<Uuid, Left>,
    failing: JoinMap<Uuid, Left>,
    /// Those that ended and are to be released, with when they are due. They leave the maps first:
    /// what is released may be claimed at once, and would be taken for one that is served already.
    ended: HashMap<Uuid, Option<Timestamp>>,
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
            secrets: SecretSealer::new(keys),
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
            () = lanes.all_ended() => {}
            () = shutdown.stop.cancelled() => lanes.abort().await,
        }
        // What it had in hand is free at once, not only when its time is over.
        if let Err(error) = self.desk.store.release_all_webhooks(self.desk.holder).await {
            tracing::debug!(%error, "webhooks were not released");
        }
    }

    async fn dispatch(&self, lanes: &mut Lanes, drain: &CancellationToken) {
        let mut hints = self.bus.subscribe();
        let mut renewals = interval(RENEW);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut measurements = interval(MEASURE);
        measurements.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut next_look, mut soonest) = (Instant::now(), Instant::now());
        loop {
            tokio::select! {
                () = sleep_until(next_look) => {
                    let began = Instant::now();
                    if let Err(error) = self.look(lanes, drain).await {
                        tracing::warn!(%error, "webhooks can't be looked for");
                    }
                    soonest = Instant::now() + PAUSE.max(began.elapsed() * PAUSE_FACTOR);
                    next_look = soonest.max(began + LOOK);
                }
                hint = hints.recv() => match hint {
                    Ok(arrivals) if arrivals.iter().all(|arrival| arrival.tenant.is_none()) => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => next_look = next_look.min(soonest),
                    Err(RecvError::Closed) => return,
                },
                // What came for a lane while it was in hand may have been seen by nobody.
                Some((webhook, left)) = lanes.healthy.join_next() => {
                    lanes.end(webhook, left);
                    next_look = next_look.min(soonest);
                }
                Some((webhook, left)) = lanes.failing.join_next() => {
                    lanes.end(webhook, left);
                    next_look = next_look.min(soonest);
                }
                _ = renewals.tick() => {
                    if let Err(error) = self.desk.store.hold_webhooks(self.desk.holder, &lanes.webhooks()).await {
                        tracing::debug!(%error, "webhooks in hand were not renewed");
                    }
                }
                _ = measurements.tick() => {
                    if let Err(error) = self.measure().await {
                        tracing::debug!(%error, "what waits for webhooks was not measured");
                    }
                }
            }
        }
    }

    /// Releases lanes that ended, all at once, and takes others in hand that are due, as many as
    /// there is room for.
    async fn look(&self, lanes: &mut Lanes, drain: &CancellationToken) -> Result<(), StoreError> {
        lanes.end_finished();
        if !lanes.ended.is_empty() {
            self.desk.store.release_webhooks(self.desk.holder, &lanes.ended).await?;
            lanes.ended.clear();
        }
        let room = |taken: usize, of: usize| i64::try_from(of.saturating_sub(taken)).unwrap_or(0);
        let (healthy, failing) = (room(lanes.healthy.len(), HEALTHY), room(lanes.failing.len(), FAILING));
        let now = self.desk.clock.now();
        let claimed = self.desk.store.claim_webhooks(self.desk.holder, healthy, failing, now).await?;
        for ClaimedWebhook { id, failing } in claimed {
            // One whose time was over, since Postgres or this process stood still, may be in hand.
            if !lanes.has(id) {
                let (desk, drain) = (Arc::clone(&self.desk), drain.clone());
                let lanes = if failing { &mut lanes.failing } else { &mut lanes.healthy };
                lanes.spawn(id, async move { desk.serve(id, drain).await });
            }
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
    fn has(&self, webhook: Uuid) -> bool {
        self.healthy.contains_key(&webhook) || self.failing.contains_key(&webhook)
    }

    fn webhooks(&self) -> Vec<Uuid> {
        self.healthy.keys().chain(self.failing.keys()).copied().collect()
    }

    /// Notes how a lane ended. One that panicked is free when its time is over.
    fn end(&mut self, webhook: Uuid, left: Result<Left, JoinError>) {
        if let Ok(Left::Released(due_at)) = left {
            self.ended.insert(webhook, due_at);
        }
    }

    /// Notes all that ended so far.
    fn end_finished(&mut self) {
        while let Some(Some((webhook, left))) = self.healthy.join_next().now_or_never() {
            self.end(webhook, left);
        }
        while let Some(Some((webhook, left))) = self.failing.join_next().now_or_never() {
            self.end(webhook, left);
        }
    }

    async fn all_ended(&mut self) {
        while self.healthy.join_next().await.is_some() {}
        while self.failing.join_next().await.is_some() {}
    }

    async fn abort(&mut self) {
        self.healthy.shutdown().await;
        self.failing.shutdown().await;
    }
}

fn gauge(count: impl TryInto<u32>) -> f64 {
    count.try_into().unwrap_or(u32::MAX).into()
}
