//! One attempt for an event, and its recording.

use std::sync::Arc;
use std::time::Duration;

use tempmail_model::clock::Clock;
use tempmail_model::id::new_id;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::traces::{AttributeValue, Stage, StageTimer};
use tempmail_store::{DeliveryAttempt, PendingEvent, RecordOutcome, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::sleep;
use uuid::Uuid;

use super::file_descriptors::NoFileDescriptor;
use super::sender::Sender;
use super::{payload, retry, signature};

/// Tries to record attempts while Postgres is unavailable, and the time between them: together shorter than a
/// lease.
const RECORD_TRIES: u32 = 10;
const RECORD_PAUSE: Duration = Duration::from_secs(1);
/// Statements of failing lanes at a time. Receivers that die together fail together: what is recorded of them waits for each
/// other, and takes no connection that healthy lanes need.
pub(super) const FAILING_STATEMENTS: usize = 2;

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
    /// Permits for statements of failing lanes.
    pub(super) failing_statements: Semaphore,
}

/// Where a request is sent, and what signs it.
#[derive(Debug, Clone)]
pub(super) struct Destination {
    pub(super) webhook: Uuid,
    pub(super) url: Arc<str>,
    pub(super) secret: Arc<str>,
}

impl LaneContext {
    /// Permits for up to this many requests of a lane, of which some are in flight. The first one needs none.
    pub(super) fn permits(&self, wanted: usize, in_flight: usize) -> Vec<Option<OwnedSemaphorePermit>> {
        let first = (in_flight == 0).then_some(None);
        let extra =
            std::iter::from_fn(|| Arc::clone(&self.extra_requests).try_acquire_owned().ok().map(Some));
        first.into_iter().chain(extra).take(wanted).collect()
    }

    /// Waits until a statement of a lane may run; at once if it is not failing.
    pub(super) async fn statement_permit(&self, is_failing: bool) -> Option<SemaphorePermit<'_>> {
        // Never closed.
        if is_failing { self.failing_statements.acquire().await.ok() } else { None }
    }

    /// Sends one request for an event of a webhook.
    pub(super) async fn attempt(
        &self,
        event: PendingEvent,
        destination: &Destination,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<DeliveryAttempt, NoFileDescriptor> {
        let (started_at, body, id) = (self.clock.now(), payload::body(&event), payload::event_id(&event));
        let Destination { webhook, url, secret } = destination;
        let headers = signature::headers(secret, &id, started_at, &body);
        let timer = StageTimer::start(Stage::WebhookDelivery);
        let outcome = self.sender.send(url, headers, body).await;
        drop(permit);
        let outcome = outcome.inspect_err(|NoFileDescriptor| {
            metrics::counter!("tempmail_webhook_attempts_postponed_total").increment(1);
        })?;
        let (number, ended_at) = (event.attempts + 1, self.clock.now());
        let (error, detail) = (
            outcome.failure.map(|failure| failure.error),
            outcome.failure.and_then(|failure| failure.detail),
        );
        timer.end(
            [event.message.id],
            error,
            &[
                ("tempmail.webhook.id", AttributeValue::Id(*webhook)),
                ("tempmail.webhook.event_id", AttributeValue::Id(event.id)),
                ("tempmail.webhook.attempt", AttributeValue::number(number)),
                ("http.response.status_code", AttributeValue::number(outcome.status_code)),
            ],
        );
        if let Some(detail) = detail {
            tracing::info!(%webhook, detail, "TLS with the receiver of a webhook failed");
        }
        let result = error.unwrap_or("success");
        metrics::counter!("tempmail_webhook_attempts_total", "result" => result).increment(1);
        metrics::histogram!("tempmail_webhook_attempt_seconds").record(outcome.duration.as_secs_f64());
        Ok(DeliveryAttempt {
            id: new_id(ended_at),
            event: event.id,
            seq: event.seq,
            mailbox: event.message.owner,
            number,
            started_at,
            status_code: outcome.status_code,
            error,
            detail,
            duration_ms: i32::try_from(outcome.duration.as_millis()).unwrap_or(i32::MAX),
            retry_after: outcome.retry_after.map(|retry_after| retry_after.delay(ended_at)),
        })
    }

    /// Records attempts, retrying for some seconds while Postgres is unavailable: what is not recorded is
    /// sent again.
    pub(super) async fn record(
        &self,
        webhook: Uuid,
        attempts: &[DeliveryAttempt],
    ) -> Result<RecordOutcome, StoreError> {
        let delays = retry::delays();
        let is_failing = attempts.iter().all(|attempt| attempt.error.is_some());
        let mut tries = 1;
        let outcome = loop {
            let permit = self.statement_permit(is_failing).await;
            let now = self.clock.now();
            let recorded =
                self.store.record_deliveries(webhook, self.lease_holder, attempts, &delays, now).await;
            drop(permit);
            match recorded {
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
        if outcome == RecordOutcome::Fenced {
            return Ok(outcome);
        }
        for attempt in attempts.iter().filter(|attempt| retry::is_given_up(attempt)) {
            metrics::counter!("tempmail_webhook_events_given_up_total").increment(1);
            tracing::info!(%webhook, event = %attempt.event, "an event of a webhook was given up after its tenth attempt");
        }
        if outcome == RecordOutcome::Disabled {
            metrics::counter!("tempmail_webhooks_disabled_total").increment(1);
            tracing::info!(%webhook, "a webhook was disabled after 10 failures in a row");
        }
        Ok(outcome)
    }
}
