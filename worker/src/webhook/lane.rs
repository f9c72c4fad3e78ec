//! A claimed lane: sends the events of a webhook in their order, some side by side while requests succeed, and one at a
//! time while they fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tempmail_store::{
    DeliveryAttempt, EventCursor, EventLimits, PendingEvent, PendingEvents, Probe, RecordOutcome, StoreError,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::attempt::{Destination, LaneContext};
use super::failure::NoFileDescriptor;

/// Requests to one webhook side by side, at most.
const WINDOW_MAX: usize = 16;
/// For so many of them one event that was tried before is sent, too, beside them.
const WINDOW_OF_RETRY: usize = 4;
/// Time after which a lane is released for others to be claimed first.
const QUANTUM: Duration = Duration::from_secs(5);
/// Time after which events are looked for again while requests are in flight.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Delay of a webhook whose events can't be signed or recorded, through no fault of its receiver.
const LONG_DELAY: SignedDuration = SignedDuration::from_secs(60);
/// Delay of a webhook for which there was no file descriptor, or with events whose domain does not serve at
/// the moment.
const SHORT_DELAY: SignedDuration = SignedDuration::from_secs(5);
/// Events that are read together while none of those before them could be sent.
const SKIP_BATCH: i64 = 200;
/// Events that are looked at for one that a failing webhook is tried with, before the lane is released.
const PROBE_TRIES: usize = 32;

/// How a lane ended.
enum LaneOutcome {
    /// The lease is to be released. The webhook is due again at once, or after a delay.
    Released { delay: Option<SignedDuration> },
    /// The lease is lost.
    LeaseLost,
}

/// Why an event is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// It is the next one that was never tried.
    Next,
    /// It was tried before, and is due again.
    Retry,
    /// It shows whether the receiver works again.
    Probe,
}

/// A request that has ended.
struct EndedRequest {
    /// The event's.
    seq: i64,
    attempt: Result<DeliveryAttempt, NoFileDescriptor>,
}

/// The requests of a lane, and how they went.
struct Lane {
    context: Arc<LaneContext>,
    webhook: Uuid,
    /// Requests in flight. Tasks, so that responses are read and timed also while attempts are recorded.
    requests: JoinSet<EndedRequest>,
    /// Their events, by `seq`.
    in_flight: BTreeMap<i64, Reason>,
    /// Failed attempts in a row.
    failures: i32,
    /// No attempt before; `None`: at once.
    due_at: Option<Timestamp>,
    /// Requests for events that were never tried which may be in flight at once: doubled by each success, and one again
    /// after a failure.
    window: usize,
    /// The last events that were read.
    read: EventCursor,
    /// Whether no more requests are sent: those in flight end and are recorded.
    finishing: bool,
    /// When the webhook is due again because of events that could not be sent, through no fault of the
    /// receiver.
    delay: Option<SignedDuration>,
}

/// Sends the pending events of a webhook that has failed so often in a row: until none can be sent now, the quantum
/// ends, or `drain`. Then releases the lease.
pub(super) async fn run(context: Arc<LaneContext>, webhook: Uuid, failures: i32, drain: CancellationToken) {
    let mut lane = Lane {
        context: Arc::clone(&context),
        webhook,
        requests: JoinSet::new(),
        in_flight: BTreeMap::new(),
        failures,
        due_at: None,
        window: 1,
        read: EventCursor::default(),
        finishing: false,
        delay: None,
    };
    let outcome = lane.send_pending(&drain).await.unwrap_or_else(|error| {
        tracing::warn!(%webhook, %error, "a webhook lane was aborted");
        // Attempts that can't be recorded would be repeated again and again.
        LaneOutcome::Released { delay: (!error.is_unavailable()).then_some(LONG_DELAY) }
    });
    if let LaneOutcome::Released { delay } = outcome {
        let due_at = delay.map(|delay| context.clock.now() + delay);
        let _permit = context.statement_permit(lane.failures > 0).await;
        if let Err(error) = context.store.release_webhook_lease(webhook, context.lease_holder, due_at).await {
            tracing::debug!(%webhook, %error, "a webhook lease was not released: it will expire");
        }
    }
}

impl Lane {
    async fn send_pending(&mut self, drain: &CancellationToken) -> Result<LaneOutcome, StoreError> {
        let quantum_end = Instant::now() + QUANTUM;
        loop {
            let in_quantum = Instant::now() < quantum_end;
            // One that hangs, and was refused before, does not hold up others.
            let may_start =
                (in_quantum || self.is_in_flight(Reason::Retry)) && !self.finishing && !drain.is_cancelled();
            if may_start {
                self.start_requests(in_quantum).await?;
            }
            let Some(ended) = self.next_ended(may_start).await else { break };
            let attempts = self.ended_attempts(ended);
            if attempts.is_empty() {
                continue;
            }
            match self.context.record(self.webhook, &attempts).await? {
                RecordOutcome::Active { failures, due_at } => {
                    (self.failures, self.due_at) = (failures, due_at);
                }
                RecordOutcome::Disabled | RecordOutcome::Fenced => return Ok(LaneOutcome::LeaseLost),
            }
            for attempt in &attempts {
                let succeeded = attempt.error.is_none();
                self.window = if succeeded { (self.window * 2).min(WINDOW_MAX) } else { 1 };
            }
        }
        Ok(LaneOutcome::Released { delay: self.delay })
    }

    /// Waits for requests to end; `None` if none is in flight. Also returns, with none, when it is time to look for
    /// further events.
    async fn next_ended(&mut self, may_start: bool) -> Option<Vec<EndedRequest>> {
        let first = if may_start && self.has_capacity() {
            match timeout(LOOK_PERIOD, self.requests.join_next()).await {
                Ok(first) => first?,
                Err(_) => return Some(Vec::new()),
            }
        } else {
            self.requests.join_next().await?
        };
        let rest = std::iter::from_fn(|| self.requests.try_join_next());
        let ended = std::iter::once(first).chain(rest);
        Some(ended.map(|ended| ended.expect("a request does not panic, and is not cancelled")).collect())
    }

    /// The attempts that were made of requests that have ended.
    fn ended_attempts(&mut self, ended: Vec<EndedRequest>) -> Vec<DeliveryAttempt> {
        let mut attempts = Vec::with_capacity(ended.len());
        for EndedRequest { seq, attempt } in ended {
            self.in_flight.remove(&seq);
            match attempt {
                Ok(attempt) => attempts.push(attempt),
                Err(NoFileDescriptor) => (self.delay, self.finishing) = (Some(SHORT_DELAY), true),
            }
        }
        attempts
    }

    /// Whether an event that was never tried may be sent now.
    fn has_capacity(&self) -> bool {
        if self.failures == 0 {
            self.window_capacity() > 0
        } else {
            !self.is_in_flight(Reason::Probe)
                && self.due_at.is_none_or(|due_at| due_at <= self.context.clock.now())
        }
    }

    /// How many more events that were never tried may be in flight.
    fn window_capacity(&self) -> usize {
        let in_window = self.in_flight.values().filter(|reason| **reason != Reason::Retry).count();
        self.window.saturating_sub(in_window)
    }

    /// How many more events that were tried before may be in flight.
    fn retry_capacity(&self) -> usize {
        let retries = self.in_flight.values().filter(|reason| **reason == Reason::Retry).count();
        self.window.div_ceil(WINDOW_OF_RETRY).saturating_sub(retries)
    }

    /// Starts the requests that may be sent now.
    async fn start_requests(&mut self, with_retries: bool) -> Result<(), StoreError> {
        if self.failures == 0 {
            let retries = if with_retries { self.retry_capacity() } else { 0 };
            self.start_window(self.window_capacity(), retries).await
        } else if self.has_capacity() {
            self.start_probe().await
        } else {
            Ok(())
        }
    }

    /// Starts up to `untried` requests for events that were never tried, and `retried` for those that are due again.
    async fn start_window(&mut self, untried: usize, retried: usize) -> Result<(), StoreError> {
        let permits = self.context.permits(untried + retried, self.requests.len());
        if permits.is_empty() {
            return Ok(());
        }
        let (untried, retried) = (untried.min(permits.len()), retried.min(permits.len()));
        let Some(pending) = self.next_events(untried, retried).await? else {
            self.finishing = true;
            return Ok(());
        };
        self.send(
            pending,
            permits,
            |event| {
                if event.due_at.is_some() { Reason::Retry } else { Reason::Next }
            },
        );
        Ok(())
    }

    /// Starts the one request that a failing webhook is tried with.
    async fn start_probe(&mut self) -> Result<(), StoreError> {
        let permits = self.context.permits(1, self.requests.len());
        if permits.is_empty() {
            return Ok(());
        }
        let context = Arc::clone(&self.context);
        let statement = context.statement_permit(true).await;
        let probe = self.find_probe().await?;
        drop(statement);
        if let Some(pending) = probe {
            self.send(pending, permits, |_| Reason::Probe);
        }
        Ok(())
    }

    fn is_in_flight(&self, reason: Reason) -> bool {
        self.in_flight.values().any(|other| *other == reason)
    }

    /// Sends events, each with a permit.
    fn send(
        &mut self,
        pending: PendingEvents,
        permits: Vec<Option<OwnedSemaphorePermit>>,
        reason: impl Fn(&PendingEvent) -> Reason,
    ) {
        let webhook = self.webhook;
        let Ok(secret) = self.context.secrets.open(webhook, &pending.secret) else {
            tracing::error!(%webhook, "the secret of a webhook does not open: is a key missing?");
            (self.delay, self.finishing) = (Some(LONG_DELAY), true);
            return;
        };
        let destination = Destination { webhook, url: pending.url.into(), secret: secret.into() };
        for (event, permit) in pending.events.into_iter().zip(permits) {
            let (context, destination, seq) = (Arc::clone(&self.context), destination.clone(), event.seq);
            self.in_flight.insert(seq, reason(&event));
            self.requests.spawn(async move {
                EndedRequest { seq, attempt: context.attempt(event, &destination, permit).await }
            });
        }
    }

    /// Reads up to `untried` further events that were never tried and `retried` that are due again, with the current
    /// secret; `None` if nothing may be sent any more. Deletes those whose message is gone.
    async fn next_events(
        &mut self,
        untried: usize,
        retried: usize,
    ) -> Result<Option<PendingEvents>, StoreError> {
        let LaneContext { store, lease_holder, clock, .. } = &*self.context;
        let limit = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let wanted = EventLimits { untried: limit(untried), retried: limit(retried) };
        let skipped = EventLimits {
            untried: if untried == 0 { 0 } else { SKIP_BATCH },
            retried: if retried == 0 { 0 } else { SKIP_BATCH },
        };
        let (now, mut limits) = (clock.now(), wanted);
        loop {
            let pending =
                store.list_pending_events(self.webhook, *lease_holder, self.read, limits, now).await?;
            let Some(mut pending) = pending else { return Ok(None) };
            if pending.rotated {
                store.apply_rotation(self.webhook, *lease_holder, now).await?;
                continue;
            }
            if !pending.blocked.is_empty() {
                self.delay = Some(SHORT_DELAY);
            }
            if !pending.without_message.is_empty() {
                store.delete_events_without_message(self.webhook, &pending.without_message, now).await?;
            }
            // A probe that is still in flight after another request has succeeded.
            pending.events.retain(|event| !self.in_flight.contains_key(&event.seq));
            let is_end = pending.read == self.read;
            self.read = pending.read;
            if pending.events.is_empty() && !is_end {
                // There may be many events that can't be sent.
                limits = skipped;
            } else if limits != wanted && !is_end {
                // To the first ones that can be, of which there may be more than are wanted.
                for event in pending.events.iter().rev() {
                    self.read.pass(event.due_at, event.seq - 1);
                }
                limits = wanted;
            } else {
                return Ok(Some(pending));
            }
        }
    }

    /// The event that the webhook is tried with, with the current secret; `None` if none can be sent now. Deletes those
    /// whose message is gone.
    async fn find_probe(&mut self) -> Result<Option<PendingEvents>, StoreError> {
        let LaneContext { store, lease_holder, clock, .. } = &*self.context;
        let now = clock.now();
        let mut except: Vec<i64> = self.in_flight.keys().copied().collect();
        for _ in 0..PROBE_TRIES {
            let probe = store.find_probe(self.webhook, *lease_holder, &except, now).await?;
            let Some(Probe { pending, is_due }) = probe else { return Ok(None) };
            if pending.rotated {
                store.apply_rotation(self.webhook, *lease_holder, now).await?;
            } else if !pending.events.is_empty() {
                return Ok(Some(pending));
            } else if let Some(seq) = pending.without_message.first() {
                self.delete_without_message(*seq, now).await?;
            } else if let Some(seq) = pending.blocked.first() {
                except.push(*seq);
            } else if is_due {
                break;
            } else {
                // An event that comes now is tried at once.
                return Ok(None);
            }
        }
        if self.in_flight.is_empty() {
            // Those that are due wait for their domain.
            self.delay = Some(SHORT_DELAY);
        }
        Ok(None)
    }

    /// Deletes the event `seq`, whose message is gone, with those near it whose message is gone, too: mailboxes are
    /// cleared with many.
    async fn delete_without_message(&self, seq: i64, now: Timestamp) -> Result<(), StoreError> {
        let LaneContext { store, lease_holder, .. } = &*self.context;
        let limits = EventLimits { untried: SKIP_BATCH, retried: SKIP_BATCH };
        let after = EventCursor::before(seq);
        let near = store.list_pending_events(self.webhook, *lease_holder, after, limits, now).await?;
        let mut gone = near.map_or_else(Vec::new, |near| near.without_message);
        gone.push(seq);
        store.delete_events_without_message(self.webhook, &gone, now).await
    }
}
