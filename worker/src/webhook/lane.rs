//! A webhook in hand: its events are sent in their order, some side by side while it goes well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use tempmail_model::clock::Clock;
use tempmail_model::id::new_id;
use tempmail_model::sealed::SecretSealer;
use tempmail_store::{Attempt, Recorded, Store, StoreError, WaitingEvent, WaitingEvents};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::sender::Sender;
use super::{event, schedule, signature};

/// Requests to one webhook side by side, at most.
const WINDOW_MAX: usize = 16;
/// After so long a webhook goes to the end of the line.
const QUANTUM: Duration = Duration::from_secs(5);
/// When a webhook is looked at again whose events can't be sent just now, through no fault of its
/// receiver.
const LATER: SignedDuration = SignedDuration::from_secs(60);
/// Times that recording is tried while Postgres is away, and the time between them: shorter in all
/// than a webhook is in hand.
const RECORD_TRIES: u32 = 10;
const RECORD_PAUSE: Duration = Duration::from_secs(1);

/// What all lanes of a process have in common.
pub(super) struct Desk {
    /// This process, as the store knows it.
    pub(super) holder: Uuid,
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) sender: Sender,
    pub(super) secrets: SecretSealer,
    /// Requests beside the first one of each lane, which needs no room: no webhook waits for
    /// another.
    pub(super) room_beside: Arc<Semaphore>,
}

/// Why a lane is left.
pub(super) enum Left {
    /// Others may have it; not before a moment, where one is said.
    Released(Option<Timestamp>),
    /// It is not in hand any more.
    Lost,
}

/// How far a lane has come.
struct Progress {
    /// Requests side by side: doubled by each that goes well.
    window: usize,
    /// The last event that was looked at.
    after: i64,
    /// Whether some wait for a domain that does not serve.
    held: bool,
    /// Whether an attempt failed: nothing more is sent.
    failed: bool,
}

impl Desk {
    /// Sends what waits for a webhook, until nothing does, it fails, its time is over, or `drain`.
    pub(super) async fn serve(&self, webhook: Uuid, drain: CancellationToken) -> Left {
        self.send_all(webhook, &drain).await.unwrap_or_else(|error| {
            tracing::warn!(%webhook, %error, "a webhook was left");
            Left::Released(None)
        })
    }

    async fn send_all(&self, webhook: Uuid, drain: &CancellationToken) -> Result<Left, StoreError> {
        let quantum = Instant::now() + QUANTUM;
        let mut progress = Progress { window: 1, after: 0, held: false, failed: false };
        let mut sending = FuturesUnordered::new();
        loop {
            if !progress.failed && Instant::now() < quantum && !drain.is_cancelled() {
                let room = self.room(progress.window, sending.len());
                if !room.is_empty() {
                    let Some(waiting) = self.next(webhook, &mut progress, room.len()).await? else {
                        return Ok(Left::Lost);
                    };
                    let Ok(secret) = self.secrets.open(webhook, &waiting.secret) else {
                        tracing::error!(%webhook, "the secret of a webhook does not open: is a key missing?");
                        return Ok(Left::Released(Some(self.clock.now() + LATER)));
                    };
                    let (url, secret): (Arc<str>, Arc<str>) = (waiting.url.into(), secret.into());
                    for (event, room) in waiting.events.into_iter().zip(room) {
                        sending.push(self.send(event, Arc::clone(&url), Arc::clone(&secret), room));
                    }
                }
            }
            let Some(first) = sending.next().await else { break };
            let mut ended = vec![first];
            while let Some(Some(next)) = sending.next().now_or_never() {
                ended.push(next);
            }
            progress.failed |= ended.iter().any(|attempt| attempt.error.is_some());
            match self.record(webhook, &ended).await? {
                Recorded::Active => progress.window = (progress.window * 2).min(WINDOW_MAX),
                Recorded::Disabled | Recorded::Fenced => return Ok(Left::Lost),
            }
        }
        let later = progress.held && !progress.failed;
        Ok(Left::Released(later.then(|| self.clock.now() + LATER)))
    }

    /// Room for as many requests as there may be more of.
    fn room(&self, window: usize, sending: usize) -> Vec<Option<OwnedSemaphorePermit>> {
        let first = (sending == 0).then_some(None);
        let beside = std::iter::from_fn(|| Arc::clone(&self.room_beside).try_acquire_owned().ok().map(Some));
        first.into_iter().chain(beside).take(window.saturating_sub(sending)).collect()
    }

    /// Up to `most` further events, with the secret of this moment; `None` where the webhook is not
    /// in hand any more. Those whose mail is gone are dropped.
    async fn next(
        &self,
        webhook: Uuid,
        progress: &mut Progress,
        most: usize,
    ) -> Result<Option<WaitingEvents>, StoreError> {
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let now = self.clock.now();
        loop {
            let waiting =
                self.store.list_waiting_events(webhook, self.holder, progress.after, limit, now).await?;
            let Some(waiting) = waiting else { return Ok(None) };
            progress.held |= waiting.held;
            if !waiting.gone.is_empty() {
                self.store.drop_events(webhook, &waiting.gone).await?;
            }
            let Some(last) = waiting.last else { return Ok(Some(waiting)) };
            progress.after = last;
            if !waiting.events.is_empty() {
                return Ok(Some(waiting));
            }
        }
    }

    async fn send(
        &self,
        event: WaitingEvent,
        url: Arc<str>,
        secret: Arc<str>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Attempt {
        let (began, body, id) = (self.clock.now(), event::body(&event), event::event_id(&event));
        let headers = signature::headers(&secret, &id, began, &body);
        let answer = self.sender.send(&url, headers, body).await;
        drop(room);
        let result = answer.error.unwrap_or("success");
        metrics::counter!("tempmail_webhook_attempts_total", "result" => result).increment(1);
        metrics::histogram!("tempmail_webhook_attempt_seconds").record(answer.took.as_secs_f64());
        Attempt {
            id: new_id(self.clock.now()),
            event: event.id,
            seq: event.seq,
            number: event.attempts + 1,
            began,
            status_code: answer.status_code,
            error: answer.error,
            duration_ms: i32::try_from(answer.took.as_millis()).unwrap_or(i32::MAX),
            retry_after: answer.retry_after,
        }
    }

    /// Records attempts, also where Postgres is away for some seconds: what is not recorded is sent
    /// again.
    async fn record(&self, webhook: Uuid, attempts: &[Attempt]) -> Result<Recorded, StoreError> {
        let gaps = schedule::gaps();
        let mut tries = 1;
        let recorded = loop {
            let now = self.clock.now();
            match self.store.record_deliveries(webhook, self.holder, attempts, &gaps, now).await {
                Ok(recorded) => break recorded,
                Err(error) if tries == RECORD_TRIES => return Err(error),
                Err(error) if error.is_missing_slot() => self.store.ensure_delivery_day(now).await?,
                Err(error) if error.is_unavailable() => sleep(RECORD_PAUSE).await,
                Err(error) => return Err(error),
            }
            tries += 1;
        };
        if recorded == Recorded::Disabled {
            metrics::counter!("tempmail_webhooks_disabled_total").increment(1);
            tracing::info!(%webhook, "a webhook was disabled after 10 failures in a row");
        }
        Ok(recorded)
    }
}
