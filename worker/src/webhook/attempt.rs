//! One attempt for an event: its signature, its recording, and when the webhook or the event is retried after a
//! failure.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::{SignedDuration, Timestamp};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;
use tempmail_model::chance;
use tempmail_model::clock::Clock;
use tempmail_model::id::new_id;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::traces::{AttributeValue, Stage, StageTimer};
use tempmail_store::{DeliveryAttempt, PendingEvent, RecordOutcome, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::sleep;
use uuid::Uuid;

use super::failure::NoFileDescriptor;
use super::payload;
use super::sender::Sender;

/// Tries to record attempts while Postgres is unavailable, and the time between them: together shorter than a
/// lease.
const RECORD_TRIES: u32 = 10;
const RECORD_PAUSE: Duration = Duration::from_secs(1);
/// Statements of failing lanes at a time. Receivers that die together fail together: what is recorded of them waits
/// for each other, and takes no connection that healthy lanes need.
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
        let headers = signed_headers(secret, &id, started_at, &body);
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
        let delays = retry_delays();
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
        for attempt in attempts.iter().filter(|attempt| is_given_up(attempt)) {
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

/// Prefix of a secret; what follows is the key of Standard Webhooks in Base64.
const SECRET_PREFIX: &str = "whsec_";

/// The header fields that sign a request, our own and those of Standard Webhooks, where it starts at `started_at`.
fn signed_headers(secret: &str, event_id: &str, started_at: Timestamp, body: &[u8]) -> HeaderMap {
    let seconds = started_at.as_second().to_string();
    let own = mac(secret.as_bytes(), &[seconds.as_bytes(), b".", body]);
    let hex: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
    let encoded = secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret);
    let key = STANDARD.decode(encoded).unwrap_or_default();
    let standard = mac(&key, &[event_id.as_bytes(), b".", seconds.as_bytes(), b".", body]);
    let fields = [
        ("x-webhook-id", event_id.to_owned()),
        ("x-webhook-timestamp", seconds.clone()),
        ("x-webhook-signature", format!("sha256={hex}")),
        ("webhook-id", event_id.to_owned()),
        ("webhook-timestamp", seconds),
        ("webhook-signature", format!("v1,{}", STANDARD.encode(standard))),
        ("content-type", "application/json".to_owned()),
    ];
    fields
        .into_iter()
        .map(|(name, value)| {
            let value = HeaderValue::try_from(value).expect("ids, digits and Base64 are ASCII");
            (HeaderName::from_static(name), value)
        })
        .collect()
}

/// HMAC-SHA256 of the concatenated parts.
fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Delays after the first, second, … failure: of a webhook those in a row, of an event its own. The failure after the
/// last delay disables the webhook, or the event is given up.
const RETRY_DELAYS: [SignedDuration; 9] = [
    SignedDuration::from_secs(5),
    SignedDuration::from_secs(30),
    SignedDuration::from_mins(2),
    SignedDuration::from_mins(10),
    SignedDuration::from_mins(30),
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(2),
    SignedDuration::from_hours(3),
    SignedDuration::from_hours(3),
];

/// Each delay is shorter or longer by up to this share, so that webhooks that failed together are not retried
/// together.
const JITTER: f64 = 0.2;

/// The delays, each with a jitter of its own.
fn retry_delays() -> [SignedDuration; RETRY_DELAYS.len()] {
    RETRY_DELAYS.map(|delay| delay.mul_f64(chance::factor(1.0 - JITTER..=1.0 + JITTER)))
}

/// Whether an attempt was the last one of its event, which was not delivered.
fn is_given_up(attempt: &DeliveryAttempt) -> bool {
    attempt.error.is_some() && usize::try_from(attempt.number).is_ok_and(|number| number > RETRY_DELAYS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values were computed with Python's `hmac`.
    #[test]
    fn signs_as_the_interface_and_standard_webhooks_specify() {
        let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let started_at = Timestamp::from_second(1_700_000_000).unwrap();
        let headers = signed_headers(secret, "evt_1", started_at, b"{\"a\":1}");
        assert_eq!(headers["x-webhook-timestamp"], "1700000000");
        assert_eq!(headers["x-webhook-id"], headers["webhook-id"]);
        assert_eq!(
            headers["x-webhook-signature"],
            "sha256=7ca151e4fc23256c89e882261933d6af9a8be1f09f32dd687e83b0e34da7e68f"
        );
        assert_eq!(headers["webhook-signature"], "v1,hUVxIYXs8Zy9GDiZD1uQbBwXoZGMAB6RVLdZZ3ffmek=");
    }

    #[test]
    fn delays_stay_within_their_jitter() {
        for _ in 0..1_000 {
            for (delay, base) in retry_delays().iter().zip(RETRY_DELAYS) {
                assert!((base.mul_f64(0.8)..=base.mul_f64(1.2)).contains(delay), "{delay} for {base}");
            }
        }
    }
}
