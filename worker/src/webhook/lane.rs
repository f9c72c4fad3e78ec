//! A webhook in hand: its events are sent in their order, some side by side while it goes well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use tempmail_model::clock::Clock;
use tempmail_model::id::new_id;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_store::{DeliveryAttempt, PendingEvent, PendingEvents, RecordOutcome, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::sender::{NoFile, Sender};
use super::{event, schedule, signature};

/// Requests to one webhook side by side, at most.
const WINDOW_MAX: usize = 16;
/// After so long a webhook goes to the end of the line.
const QUANTUM: Duration = Duration::from_secs(5);
/// When a webhook is looked at again whose events can't be signed or recorded, through no fault of
/// its receiver.
const LATER: SignedDuration = SignedDuration::from_secs(60);
/// When a webhook is looked at again that there was no file for, or with events that wait for a domain
/// to serve again: others may be sent meanwhile.
const SOON: SignedDuration = SignedDuration::from_secs(5);
/// Events that are looked at together where those before them could not be sent.
const SKIPPED: i64 = 200;
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
    pub(super) secrets: WebhookSecretSealer,
    /// Requests beside the first one of each lane, which needs no room: no webhook waits for
    /// another.
    pub(super) room_beside: Arc<Semaphore>,
}

/// Why a lane is left.
enum Left {
    /// Others may have it; not before some time has passed, where that is said.
    Released(Option<SignedDuration>),
    /// It is not in hand any more.
    Lost,
}

/// How far a lane has come.
struct Progress {
    /// Requests side by side: doubled by each that goes well.
    window: usize,
    /// The last event that was looked at.
    after: i64,
    /// Whether an attempt failed.
    failed: bool,
    /// Whether nothing more is sent: what is under way ends, and is recorded.
    over: bool,
    /// When what could not be sent, for no fault of the receiver, is looked at again.
    later: Option<SignedDuration>,
}

impl Desk {
    /// Sends what waits for a webhook, until nothing does, it fails, its time is over, or `drain`.
    pub(super) async fn serve(self: Arc<Self>, webhook: Uuid, drain: CancellationToken) {
        let left = self.send_all(webhook, &drain).await.unwrap_or_else(|error| {
            tracing::warn!(%webhook, %error, "a webhook was left");
            // What can't be recorded would be sent again and again.
            Left::Released((!error.is_unavailable()).then_some(LATER))
        });
        if let Left::Released(later) = left {
            let due_at = later.map(|later| self.clock.now() + later);
            if let Err(error) = self.store.release_webhook_lease(webhook, self.holder, due_at).await {
                tracing::debug!(%webhook, %error, "a webhook was not released: its time will be over");
            }
        }
    }

    async fn send_all(
        self: &Arc<Self>,
        webhook: Uuid,
        drain: &CancellationToken,
    ) -> Result<Left, StoreError> {
        let quantum = Instant::now() + QUANTUM;
        let mut progress = Progress { window: 1, after: 0, failed: false, over: false, later: None };
        // Each is a task: their answers are read, and their time is taken, also while others are recorded.
        let mut sending = JoinSet::new();
        loop {
            if !progress.over && Instant::now() < quantum && !drain.is_cancelled() {
                let room = self.room(progress.window, sending.len());
                if !room.is_empty() {
                    let Some(waiting) = self.next(webhook, &mut progress, room.len()).await? else {
                        progress.over = true;
                        continue;
                    };
                    let Ok(secret) = self.secrets.open(webhook, &waiting.secret) else {
                        tracing::error!(%webhook, "the secret of a webhook does not open: is a key missing?");
                        (progress.later, progress.over) = (Some(LATER), true);
                        continue;
                    };
                    let (url, secret): (Arc<str>, Arc<str>) = (waiting.url.into(), secret.into());
                    for (event, room) in waiting.events.into_iter().zip(room) {
                        let (desk, url, secret) = (Arc::clone(self), Arc::clone(&url), Arc::clone(&secret));
                        sending.spawn(async move { desk.send(event, &url, &secret, room).await });
                    }
                }
            }
            let Some(first) = sending.join_next().await else { break };
            let rest = std::iter::from_fn(|| sending.try_join_next());
            let ended: Vec<Result<DeliveryAttempt, NoFile>> =
                std::iter::once(first).chain(rest).map(made).collect();
            if ended.iter().any(Result::is_err) {
                (progress.later, progress.over) = (Some(SOON), true);
            }
            let attempts: Vec<DeliveryAttempt> = ended.into_iter().flatten().collect();
            if attempts.is_empty() {
                continue;
            }
            progress.failed |= attempts.iter().any(|attempt| attempt.error.is_some());
            progress.over |= progress.failed;
            match self.record(webhook, &attempts).await? {
                RecordOutcome::Active => progress.window = (progress.window * 2).min(WINDOW_MAX),
                RecordOutcome::Disabled | RecordOutcome::Fenced => return Ok(Left::Lost),
            }
        }
        Ok(Left::Released(progress.later.filter(|_| !progress.failed)))
    }

    /// Room for as many requests as there may be more of.
    fn room(&self, window: usize, sending: usize) -> Vec<Option<OwnedSemaphorePermit>> {
        let first = (sending == 0).then_some(None);
        let beside = std::iter::from_fn(|| Arc::clone(&self.room_beside).try_acquire_owned().ok().map(Some));
        first.into_iter().chain(beside).take(window.saturating_sub(sending)).collect()
    }

    /// Up to `most` further events, with the secret of this moment; `None` where nothing may be sent
    /// any more. Those whose mail is gone are dropped.
    async fn next(
        &self,
        webhook: Uuid,
        progress: &mut Progress,
        most: usize,
    ) -> Result<Option<PendingEvents>, StoreError> {
        let mut limit = i64::try_from(most).unwrap_or(i64::MAX);
        let now = self.clock.now();
        loop {
            let waiting =
                self.store.list_pending_events(webhook, self.holder, progress.after, limit, now).await?;
            let Some(mut waiting) = waiting else { return Ok(None) };
            if waiting.blocked {
                progress.later = Some(SOON);
            }
            if !waiting.without_message.is_empty() {
                self.store.delete_events(webhook, &waiting.without_message).await?;
            }
            let Some(last) = waiting.last else { return Ok(Some(waiting)) };
            progress.after = last;
            if !waiting.events.is_empty() {
                if let Some(next) = waiting.events.get(most) {
                    progress.after = next.seq - 1;
                    waiting.events.truncate(most);
                }
                return Ok(Some(waiting));
            }
            // What can't be sent may be many.
            limit = SKIPPED;
        }
    }

    async fn send(
        &self,
        event: PendingEvent,
        url: &str,
        secret: &str,
        room: Option<OwnedSemaphorePermit>,
    ) -> Result<DeliveryAttempt, NoFile> {
        let (began, body, id) = (self.clock.now(), event::body(&event), event::event_id(&event));
        let headers = signature::headers(secret, &id, began, &body);
        let answer = self.sender.send(url, headers, body).await;
        drop(room);
        let answer = answer.inspect_err(|NoFile| {
            metrics::counter!("tempmail_webhook_attempts_without_file_total").increment(1);
        })?;
        let result = answer.error.unwrap_or("success");
        metrics::counter!("tempmail_webhook_attempts_total", "result" => result).increment(1);
        metrics::histogram!("tempmail_webhook_attempt_seconds").record(answer.took.as_secs_f64());
        Ok(DeliveryAttempt {
            id: new_id(self.clock.now()),
            event: event.id,
            seq: event.seq,
            number: event.attempts + 1,
            started_at: began,
            status_code: answer.status_code,
            error: answer.error,
            duration_ms: i32::try_from(answer.took.as_millis()).unwrap_or(i32::MAX),
            retry_after: answer.retry_after,
        })
    }

    /// Records attempts, also where Postgres is away for some seconds: what is not recorded is sent
    /// again.
    async fn record(&self, webhook: Uuid, attempts: &[DeliveryAttempt]) -> Result<RecordOutcome, StoreError> {
        let gaps = schedule::gaps();
        let mut tries = 1;
        let recorded = loop {
            let now = self.clock.now();
            match self.store.record_deliveries(webhook, self.holder, attempts, &gaps, now).await {
                Ok(recorded) => break recorded,
                Err(error) if tries == RECORD_TRIES => return Err(error),
                Err(error) if error.is_missing_partition() => {
                    self.store.ensure_delivery_partition(now).await?
                }
                Err(error) if error.is_unavailable() => sleep(RECORD_PAUSE).await,
                Err(error) => return Err(error),
            }
            tries += 1;
        };
        if recorded == RecordOutcome::Disabled {
            metrics::counter!("tempmail_webhooks_disabled_total").increment(1);
            tracing::info!(%webhook, "a webhook was disabled after 10 failures in a row");
        }
        Ok(recorded)
    }
}

/// The attempt that a task made.
fn made(ended: Result<Result<DeliveryAttempt, NoFile>, JoinError>) -> Result<DeliveryAttempt, NoFile> {
    ended.expect("a request does not panic, and nobody cancels it")
}
