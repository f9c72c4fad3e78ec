//! A claimed lane: sends the events of a webhook in their order, some side by side while requests succeed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use tempmail_model::clock::Clock;
use tempmail_model::id::new_id;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::traces::{AttributeValue, Stage, StageTimer};
use tempmail_store::{DeliveryAttempt, PendingEvent, PendingEvents, RecordOutcome, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::file_descriptors::NoFileDescriptor;
use super::sender::Sender;
use super::{payload, retry, signature};

/// Requests to one webhook side by side, at most.
const WINDOW_MAX: usize = 16;
/// Time after which a lane is released for others to be claimed first.
const QUANTUM: Duration = Duration::from_secs(5);
/// Delay of a webhook whose events can't be signed or recorded, through no fault of its receiver.
const LONG_DELAY: SignedDuration = SignedDuration::from_secs(60);
/// Delay of a webhook for which there was no file descriptor, or with events whose domain does not serve at
/// the moment.
const SHORT_DELAY: SignedDuration = SignedDuration::from_secs(5);
/// Events that are read together while none of those before them could be sent.
const SKIP_BATCH: i64 = 200;
/// Tries to record attempts while Postgres is unavailable, and the time between them: together shorter than a
/// lease.
const RECORD_TRIES: u32 = 10;
const RECORD_PAUSE: Duration = Duration::from_secs(1);

/// What all lanes of a process share.
pub(super) struct LaneContext {
    /// This process, as the store knows it.
    pub(super) lease_holder: Uuid,
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) sender: Sender,
    pub(super) secrets: WebhookSecretSealer,
    /// Permits for requests besides the first one of each lane, which needs none: no webhook waits for
    /// another.
    pub(super) extra_requests: Arc<Semaphore>,
}

/// How a lane ended.
enum LaneOutcome {
    /// The lease is to be released. The webhook is due again at once, or after a delay.
    Released { delay: Option<SignedDuration> },
    /// The lease is lost.
    LeaseLost,
}

/// The requests of a lane, and how they went.
struct Lane {
    context: Arc<LaneContext>,
    webhook: Uuid,
    /// Requests in flight. Tasks, so that responses are read and timed also while attempts are recorded.
    requests: JoinSet<Result<DeliveryAttempt, NoFileDescriptor>>,
    /// Requests that may be in flight at once: doubled after each that succeeds.
    window: usize,
    /// The last event that was read.
    last_read: i64,
    /// Whether an attempt failed.
    failed: bool,
    /// Whether no more requests are sent: those in flight end and are recorded.
    finishing: bool,
    /// When the webhook is due again because of events that could not be sent, through no fault of the
    /// receiver.
    delay: Option<SignedDuration>,
}

/// Sends the pending events of a webhook: until there are none, an attempt fails, the quantum ends, or
/// `drain`. Then releases the lease.
pub(super) async fn run(context: Arc<LaneContext>, webhook: Uuid, drain: CancellationToken) {
    let mut lane = Lane {
        context: Arc::clone(&context),
        webhook,
        requests: JoinSet::new(),
        window: 1,
        last_read: 0,
        failed: false,
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
        if let Err(error) = context.store.release_webhook_lease(webhook, context.lease_holder, due_at).await {
            tracing::debug!(%webhook, %error, "a webhook lease was not released: it will expire");
        }
    }
}

impl Lane {
    async fn send_pending(&mut self, drain: &CancellationToken) -> Result<LaneOutcome, StoreError> {
        let quantum_end = Instant::now() + QUANTUM;
        loop {
            if !self.finishing && Instant::now() < quantum_end && !drain.is_cancelled() {
                self.start_requests().await?;
            }
            let Some(first) = self.requests.join_next().await else { break };
            let rest = std::iter::from_fn(|| self.requests.try_join_next());
            let ended: Vec<Result<DeliveryAttempt, NoFileDescriptor>> = std::iter::once(first)
                .chain(rest)
                .map(|ended| ended.expect("a request does not panic, and is not cancelled"))
                .collect();
            if ended.iter().any(Result::is_err) {
                (self.delay, self.finishing) = (Some(SHORT_DELAY), true);
            }
            let attempts: Vec<DeliveryAttempt> = ended.into_iter().flatten().collect();
            if attempts.is_empty() {
                continue;
            }
            self.failed |= attempts.iter().any(|attempt| attempt.error.is_some());
            self.finishing |= self.failed;
            match self.context.record(self.webhook, &attempts).await? {
                RecordOutcome::Active => self.window = (self.window * 2).min(WINDOW_MAX),
                RecordOutcome::Disabled | RecordOutcome::Fenced => return Ok(LaneOutcome::LeaseLost),
            }
        }
        Ok(LaneOutcome::Released { delay: self.delay.filter(|_| !self.failed) })
    }

    /// Starts as many requests as the window has capacity for.
    async fn start_requests(&mut self) -> Result<(), StoreError> {
        let permits = self.context.permits(self.window, self.requests.len());
        if permits.is_empty() {
            return Ok(());
        }
        let Some(pending) = self.next_events(permits.len()).await? else {
            self.finishing = true;
            return Ok(());
        };
        let webhook = self.webhook;
        let Ok(secret) = self.context.secrets.open(webhook, &pending.secret) else {
            tracing::error!(%webhook, "the secret of a webhook does not open: is a key missing?");
            (self.delay, self.finishing) = (Some(LONG_DELAY), true);
            return Ok(());
        };
        let (url, secret): (Arc<str>, Arc<str>) = (pending.url.into(), secret.into());
        for (event, permit) in pending.events.into_iter().zip(permits) {
            let (context, url, secret) = (Arc::clone(&self.context), Arc::clone(&url), Arc::clone(&secret));
            self.requests.spawn(async move { context.attempt(webhook, event, &url, &secret, permit).await });
        }
        Ok(())
    }

    /// Reads up to `max` further events, with the current secret; `None` if nothing may be sent any more.
    /// Deletes those whose message is gone.
    async fn next_events(&mut self, max: usize) -> Result<Option<PendingEvents>, StoreError> {
        let LaneContext { store, lease_holder, clock, .. } = &*self.context;
        let mut limit = i64::try_from(max).unwrap_or(i64::MAX);
        let now = clock.now();
        loop {
            let pending =
                store.list_pending_events(self.webhook, *lease_holder, self.last_read, limit, now).await?;
            let Some(mut pending) = pending else { return Ok(None) };
            if pending.blocked {
                self.delay = Some(SHORT_DELAY);
            }
            if !pending.without_message.is_empty() {
                store.delete_events_without_message(self.webhook, &pending.without_message, now).await?;
            }
            let Some(last) = pending.last else { return Ok(Some(pending)) };
            self.last_read = last;
            if !pending.events.is_empty() {
                if let Some(next) = pending.events.get(max) {
                    self.last_read = next.seq - 1;
                    pending.events.truncate(max);
                }
                return Ok(Some(pending));
            }
            // There may be many events that can't be sent.
            limit = SKIP_BATCH;
        }
    }
}

impl LaneContext {
    /// Permits for as many requests as the window allows besides those in flight. The first request of a lane
    /// needs none.
    fn permits(&self, window: usize, in_flight: usize) -> Vec<Option<OwnedSemaphorePermit>> {
        let first = (in_flight == 0).then_some(None);
        let extra =
            std::iter::from_fn(|| Arc::clone(&self.extra_requests).try_acquire_owned().ok().map(Some));
        first.into_iter().chain(extra).take(window.saturating_sub(in_flight)).collect()
    }

    /// Sends one request for an event of a webhook.
    async fn attempt(
        &self,
        webhook: Uuid,
        event: PendingEvent,
        url: &str,
        secret: &str,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<DeliveryAttempt, NoFileDescriptor> {
        let (started_at, body, id) = (self.clock.now(), payload::body(&event), payload::event_id(&event));
        let headers = signature::headers(secret, &id, started_at, &body);
        let timer = StageTimer::start(Stage::WebhookDelivery);
        let outcome = self.sender.send(url, headers, body).await;
        drop(permit);
        let outcome = outcome.inspect_err(|NoFileDescriptor| {
            metrics::counter!("tempmail_webhook_attempts_postponed_total").increment(1);
        })?;
        let number = event.attempts + 1;
        timer.end(
            [event.message.id],
            outcome.error,
            &[
                ("tempmail.webhook.id", AttributeValue::Id(webhook)),
                ("tempmail.webhook.event_id", AttributeValue::Id(event.id)),
                ("tempmail.webhook.attempt", AttributeValue::number(number)),
                ("http.response.status_code", AttributeValue::number(outcome.status_code)),
            ],
        );
        let result = outcome.error.unwrap_or("success");
        metrics::counter!("tempmail_webhook_attempts_total", "result" => result).increment(1);
        metrics::histogram!("tempmail_webhook_attempt_seconds").record(outcome.duration.as_secs_f64());
        Ok(DeliveryAttempt {
            id: new_id(self.clock.now()),
            event: event.id,
            seq: event.seq,
            number,
            started_at,
            status_code: outcome.status_code,
            error: outcome.error,
            duration_ms: i32::try_from(outcome.duration.as_millis()).unwrap_or(i32::MAX),
            retry_after: outcome.retry_after,
        })
    }

    /// Records attempts, retrying for some seconds while Postgres is unavailable: what is not recorded is
    /// sent again.
    async fn record(&self, webhook: Uuid, attempts: &[DeliveryAttempt]) -> Result<RecordOutcome, StoreError> {
        let delays = retry::delays();
        let mut tries = 1;
        let outcome = loop {
            let now = self.clock.now();
            match self.store.record_deliveries(webhook, self.lease_holder, attempts, &delays, now).await {
                Ok(outcome) => break outcome,
                Err(error) if tries == RECORD_TRIES => return Err(error),
                Err(error) if error.is_missing_partition() => {
                    self.store.ensure_delivery_partition(now).await?;
                }
                Err(error) if error.is_unavailable() => sleep(RECORD_PAUSE).await,
                Err(error) => return Err(error),
            }
            tries += 1;
        };
        if outcome == RecordOutcome::Disabled {
            metrics::counter!("tempmail_webhooks_disabled_total").increment(1);
            tracing::info!(%webhook, "a webhook was disabled after 10 failures in a row");
        }
        Ok(outcome)
    }
}
