//! Webhooks: pending events are signed, sent and recorded, at least once.
//!
//! The pending events of a webhook are a lane. A process claims lanes for some seconds with a lease, and
//! works on each by itself, so that a receiver that hangs delays its own events only. Whatever happens to the
//! process, its leases expire, and what was not recorded is sent again. Lanes are claimed in such numbers that dead
//! receivers do not take the capacity of healthy ones.

mod attempt;
mod failure;
mod lane;
mod payload;
mod resolver;
mod sender;
mod trust;

use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempmail_bus::SharedBus;
use tempmail_model::chance;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::config::Config;
use tempmail_runtime::last_success::LastSuccess;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::{ClaimLimits, ClaimScope, ClaimedWebhook, Store, StoreError};
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::JoinMap;
use uuid::Uuid;

use self::attempt::{FAILING_STATEMENTS, LaneContext};
use self::sender::Sender;

/// Time between two polls for all lanes that are due. In between, those of tenants that got mail are claimed, and
/// those that have ended: a poll for all costs time for each webhook that waits.
const POLL_PERIOD: Duration = Duration::from_secs(1);
/// Shortest time between two polls; at least as long as the previous poll took.
const POLL_PAUSE_MIN: Duration = Duration::from_millis(10);
/// Tenants and webhooks that a poll is for; with more it is for all.
const NAMED_MAX: usize = 1_000;
/// Time between two renewals of the leases.
const RENEW_PERIOD: Duration = Duration::from_secs(5);
/// A process whose leases were not renewed for this long gives its lanes up: soon another may have them.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// How long a statement may take: a renewal that is given up leaves time for another one.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(4);
/// Without a successful poll for this long, the process is not ready.
const STALE_AFTER: Duration = Duration::from_secs(5);
/// Time between two checks of how long ago the last renewal was.
const CHECK_PERIOD: Duration = Duration::from_secs(1);
/// The component in `/readyz`.
const COMPONENT: &str = "webhooks";
/// Time between two measurements of the backlog.
const MEASURE_PERIOD: Duration = Duration::from_secs(15);
/// Requests in flight besides the first one of each lane.
const EXTRA_REQUESTS_MAX: usize = 1_000;
/// Claimed lanes that are not failing.
const HEALTHY_LANES_MAX: usize = 768;
/// Claimed lanes that are failing: each sends one request, which may take its full timeout.
const FAILING_LANES_MAX: usize = 224;

/// Delivers pending events to webhooks; one for each process.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    context: Arc<LaneContext>,
    bus: SharedBus,
    readiness: Readiness,
    /// The last poll for lanes that are due.
    last_claim: LastSuccess,
    /// The last renewal of all leases.
    last_renewal: LastSuccess,
    /// Cancelled where that was long ago; what is claimed afterwards has another one.
    leases_held: Arc<Mutex<CancellationToken>>,
}

/// Which lanes the next poll is for.
#[derive(Debug)]
struct NextPoll {
    at: Instant,
    /// No poll before.
    earliest: Instant,
    /// When all lanes are polled for.
    all_at: Instant,
    /// Tenants that got mail since the last poll.
    tenants: HashSet<Uuid>,
    /// Webhooks whose lane has ended since: an event that arrived meanwhile may be pending.
    webhooks: HashSet<Uuid>,
}

/// The tasks of claimed lanes, by webhook.
#[derive(Default)]
struct ClaimedLanes {
    healthy: JoinMap<Uuid, ()>,
    failing: JoinMap<Uuid, ()>,
}

impl Dispatcher {
    /// A dispatcher that arrivals on `bus` wake, and that opens secrets with `keys`.
    ///
    /// # Errors
    /// `webhooks.ca_file` or the system's DNS servers can't be read.
    pub(crate) fn new(
        config: &Config,
        store: &Store,
        clock: Arc<dyn Clock>,
        bus: SharedBus,
        keys: &[MasterKey],
    ) -> anyhow::Result<Self> {
        let context = LaneContext {
            lease_holder: chance::uuid(),
            store: store.within(STATEMENT_TIMEOUT),
            clock,
            sender: Sender::new(config)?,
            secrets: WebhookSecretSealer::new(keys),
            extra_requests: Arc::new(Semaphore::new(EXTRA_REQUESTS_MAX)),
            failing_statements: Semaphore::new(FAILING_STATEMENTS),
        };
        Ok(Self {
            context: Arc::new(context),
            bus,
            readiness: Readiness::default(),
            last_claim: LastSuccess::new(),
            last_renewal: LastSuccess::new(),
            leases_held: Arc::default(),
        })
    }

    /// Reports in `readiness` whether lanes are claimed.
    pub(crate) fn with_readiness(self, readiness: Readiness) -> Self {
        Self { readiness, ..self }
    }

    /// Delivers until `shutdown` drains; then lets requests in flight finish, until it stops.
    pub(crate) async fn run(self, shutdown: Shutdown) {
        let mut lanes = ClaimedLanes::default();
        tokio::select! {
            () = self.dispatch(&mut lanes, &shutdown.drain) => {}
            () = self.watch_leases() => {}
            () = self.context.sender.follow_ca_file() => {}
            () = shutdown.drain.cancelled() => {}
        }
        tokio::select! {
            () = self.finish(&mut lanes) => {}
            () = self.watch_leases() => {}
            () = shutdown.stop.cancelled() => lanes.abort().await,
        }
        // Other workers need not wait until the leases expire.
        if let Err(error) = self.context.store.release_webhook_leases(self.context.lease_holder).await {
            tracing::debug!(%error, "webhook leases were not released");
        }
    }

    /// Reports how long ago lanes were last claimed, and gives all lanes up where their leases were not renewed for
    /// long: what they have in flight is sent again, by whoever claims them. Never ends, and waits for nothing.
    async fn watch_leases(&self) {
        let age_gauge = metrics::gauge!("tempmail_webhook_claim_age_seconds");
        let mut checks = ticker(CHECK_PERIOD);
        loop {
            checks.tick().await;
            age_gauge.set(self.last_claim.age().as_secs_f64());
            if self.last_renewal.age() > GIVE_UP_AFTER {
                mem::take(&mut *self.leases_held()).cancel();
                // What is claimed from now on has leases of its own.
                self.last_renewal.set(Instant::now());
            }
        }
    }

    fn leases_held(&self) -> MutexGuard<'_, CancellationToken> {
        self.leases_held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn dispatch(&self, lanes: &mut ClaimedLanes, drain: &CancellationToken) {
        let mut arrivals = self.bus.subscribe();
        let (mut renewals, mut measurements) = (ticker(RENEW_PERIOD), ticker(MEASURE_PERIOD));
        let (mut next_poll, mut stale) = (NextPoll::now(), false);
        let pulse = self.readiness.liveness().watch(COMPONENT);
        loop {
            tokio::select! {
                () = sleep_until(next_poll.at) => {
                    let _work = pulse.begin();
                    let started = Instant::now();
                    let scope = next_poll.take_scope(started);
                    let claimed = self.claim(lanes, &scope, drain).await;
                    self.report(claimed.as_ref().err(), &mut stale);
                    // Those that were left out are found by a poll for all.
                    next_poll.follow(started, matches!(claimed, Ok(Coverage::Complete)));
                }
                batch = arrivals.recv() => match batch {
                    Ok(batch) => next_poll.after_mail_to(batch.iter().filter_map(|arrival| arrival.tenant)),
                    Err(RecvError::Lagged(_)) => next_poll.for_all(),
                    Err(RecvError::Closed) => return,
                },
                Some((webhook, _)) = lanes.healthy.join_next() => next_poll.after_lane(webhook),
                Some((webhook, _)) = lanes.failing.join_next() => next_poll.after_lane(webhook),
                _ = renewals.tick() => {
                    let _work = pulse.begin();
                    self.renew(lanes).await;
                }
                _ = measurements.tick() => {
                    if let Err(error) = self.measure().await {
                        tracing::debug!(%error, "the backlog of webhooks was not measured");
                    }
                }
            }
        }
    }

    /// Reports that lanes were not claimed, and whether that has been so for long.
    fn report(&self, error: Option<&StoreError>, stale: &mut bool) {
        match error {
            Some(error) => {
                tracing::warn!(%error, "webhooks were not claimed");
                if self.last_claim.age() > STALE_AFTER {
                    *stale = true;
                    self.readiness.set_not_ready(COMPONENT, format!("webhooks are not claimed: {error}"));
                }
            }
            None if mem::take(stale) => self.readiness.set_ready(COMPONENT),
            None => {}
        }
    }

    /// Lets requests in flight finish, and keeps the leases of their lanes until then.
    async fn finish(&self, lanes: &mut ClaimedLanes) {
        let mut renewals = ticker(RENEW_PERIOD);
        loop {
            tokio::select! {
                Some(_) = lanes.healthy.join_next() => {}
                Some(_) = lanes.failing.join_next() => {}
                _ = renewals.tick(), if !lanes.is_empty() => self.renew(lanes).await,
                else => return,
            }
        }
    }

    async fn renew(&self, lanes: &ClaimedLanes) {
        let LaneContext { store, lease_holder, .. } = &*self.context;
        let began = Instant::now();
        match store.renew_webhook_leases(*lease_holder, &lanes.webhooks()).await {
            Ok(()) => self.last_renewal.set(began),
            Err(error) => tracing::debug!(%error, "webhook leases were not renewed"),
        }
    }

    /// Claims lanes that are due, up to the maximum of each kind, and runs them.
    async fn claim(
        &self,
        lanes: &mut ClaimedLanes,
        scope: &ClaimScope,
        drain: &CancellationToken,
    ) -> Result<Coverage, StoreError> {
        let capacity = |claimed: usize, max: usize| i64::try_from(max.saturating_sub(claimed)).unwrap_or(0);
        let limits = ClaimLimits {
            healthy: capacity(lanes.healthy.len(), HEALTHY_LANES_MAX),
            failing: capacity(lanes.failing.len(), FAILING_LANES_MAX),
        };
        let LaneContext { store, lease_holder, clock, .. } = &*self.context;
        // Includes lanes that end meanwhile; the poll that follows their end claims them.
        let running = lanes.webhooks();
        let began = Instant::now();
        let claimed = store.claim_webhooks(*lease_holder, scope, limits, &running, clock.now()).await?;
        self.last_claim.set(began);
        for ClaimedWebhook { id, failures, failing } in claimed {
            let lanes = if failing { &mut lanes.failing } else { &mut lanes.healthy };
            let lane = lane::run(Arc::clone(&self.context), id, failures, drain.clone());
            let leases_held = self.leases_held().clone();
            lanes.spawn(id, async move {
                if leases_held.run_until_cancelled(lane).await.is_none() {
                    metrics::counter!("tempmail_webhook_lanes_given_up_total").increment(1);
                }
            });
        }
        metrics::gauge!("tempmail_webhooks_claimed").set(gauge(lanes.len()));
        let is_full = lanes.healthy.len() >= HEALTHY_LANES_MAX;
        Ok(if is_full { Coverage::Partial } else { Coverage::Complete })
    }

    /// Sets the gauges of the backlog, which is that of all processes.
    async fn measure(&self) -> Result<(), StoreError> {
        let backlog = self.context.store.webhook_backlog().await?;
        let now = self.context.clock.now();
        let age = backlog.oldest.map_or(0.0, |oldest| now.duration_since(oldest).as_secs_f64());
        metrics::gauge!("tempmail_webhooks_pending").set(gauge(backlog.webhooks.unsigned_abs()));
        metrics::gauge!("tempmail_webhook_oldest_pending_seconds").set(age.max(0.0));
        Ok(())
    }
}

/// Whether a poll claimed all healthy lanes that were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coverage {
    Complete,
    Partial,
}

impl NextPoll {
    fn now() -> Self {
        let now = Instant::now();
        Self { at: now, earliest: now, all_at: now, tenants: HashSet::new(), webhooks: HashSet::new() }
    }

    /// What a poll that starts is for.
    fn take_scope(&mut self, started: Instant) -> ClaimScope {
        let (tenants, webhooks) = (mem::take(&mut self.tenants), mem::take(&mut self.webhooks));
        if started >= self.all_at || tenants.len() + webhooks.len() > NAMED_MAX {
            self.all_at = started + POLL_PERIOD;
            ClaimScope::All
        } else {
            ClaimScope::Of {
                tenants: tenants.into_iter().collect(),
                webhooks: webhooks.into_iter().collect(),
            }
        }
    }

    /// After a poll. If it may have left out lanes, the next one is for all, as soon as there is a reason.
    fn follow(&mut self, started: Instant, is_complete: bool) {
        self.earliest = Instant::now() + POLL_PAUSE_MIN.max(started.elapsed());
        self.at = self.earliest.max(if is_complete { self.all_at } else { started + POLL_PERIOD });
        if !is_complete {
            self.all_at = self.earliest;
        }
    }

    fn after_mail_to(&mut self, tenants: impl Iterator<Item = Uuid>) {
        let before = self.tenants.len();
        self.tenants.extend(tenants);
        if self.tenants.len() > before {
            self.at = self.at.min(self.earliest);
        }
    }

    fn after_lane(&mut self, webhook: Uuid) {
        self.webhooks.insert(webhook);
        self.at = self.at.min(self.earliest);
    }

    fn for_all(&mut self) {
        self.all_at = self.earliest;
        self.at = self.at.min(self.earliest);
    }
}

impl ClaimedLanes {
    fn len(&self) -> usize {
        self.healthy.len() + self.failing.len()
    }

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

/// Ticks without a burst after a stall.
fn ticker(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

fn gauge(count: impl TryInto<u32>) -> f64 {
    count.try_into().unwrap_or(u32::MAX).into()
}
