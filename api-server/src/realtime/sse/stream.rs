//! One open stream: its position, and what it sends next.
//!
//! Everything up to the position is sent. What comes after is read from the ring of recent arrivals, or
//! from the store: where the ring is not enough, where rights may have changed, and after the store was
//! unavailable.

use std::time::Duration;

use axum::body::Bytes;
use futures_util::FutureExt as _;
use tempmail_admission::Share;
use tempmail_bus::Permit;
use tempmail_runtime::traces::{Stage, StageTimer};
use tempmail_store::{MessageRow, ScanRange, ScanRequest};
use tokio::time::Instant;
use uuid::Uuid;

use super::event::EventBuffer;
use crate::arrivals::{GenerationNumber, Notifications, Position, STALE_AFTER};
use crate::http::error::ApiError;
use crate::message::EmailSummary;
use crate::realtime::answer::{AnswerMetrics, Surface};
use crate::realtime::subscription::{StreamPage, Subscription};
use crate::state::AppState;

/// Time between two keep-alive comments.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Pause after the store was unavailable.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Messages that are read from the store at a time.
const PAGE_SIZE: i64 = 100;
/// Bytes after which a page is sent, and the rest of it read again.
const CHUNK_SIZE: usize = 64 << 10;
/// After this time without a request for more, messages in the ring may have been deleted: the stream
/// reads the store instead.
const RING_MAX_AGE: Duration = Duration::from_secs(2);

/// See the module.
pub(super) struct EventStream {
    state: AppState,
    subscription: Subscription,
    /// Everything up to this position is sent.
    position: i64,
    /// The generation of the stream that it belongs to.
    generation: GenerationNumber,
    next: NextStep,
    /// Whether the caller's token has to be checked before the next read.
    recheck_pending: bool,
    ping_at: Instant,
    /// When a chunk was last handed to the connection.
    last_chunk_at: Instant,
    answers: AnswerMetrics,
    _permits: (Share<Uuid>, Permit),
    _open: OpenStreamGauge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    /// Wait, then read the ring.
    Wait,
    /// Read the next page of the store.
    Read,
    /// Wait, then read the store, which was unavailable.
    Retry,
}

/// Counts a stream while it is open.
struct OpenStreamGauge;

impl OpenStreamGauge {
    fn increment() -> Self {
        metrics::gauge!("tempmail_streams").increment(1);
        Self
    }
}

impl Drop for OpenStreamGauge {
    fn drop(&mut self) {
        metrics::gauge!("tempmail_streams").decrement(1);
    }
}

/// The caller may no longer read.
struct AccessLost;

impl EventStream {
    /// Opens a stream after `since`, or after the current end of the stream. Returns its first chunk, too.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] where the caller may not read; Postgres is unavailable.
    pub(super) async fn open(
        state: AppState,
        mut subscription: Subscription,
        since: Option<Position>,
        permits: (Share<Uuid>, Permit),
    ) -> Result<(Self, Bytes), ApiError> {
        // A read after the highest position returns no rows, only the current end of the stream.
        let (after, limit) = since.map_or((i64::MAX, 1), |since| (since.seq, PAGE_SIZE));
        let current = || state.arrivals.generations().current();
        let generation = since.map_or_else(current, |since| since.generation);
        let scan = ScanRequest::new(ScanRange::After(after), limit);
        let page = subscription.read(&state, generation, scan).await?;
        let now = Instant::now();
        subscription.schedule(now + PING_INTERVAL);
        let mut stream = Self {
            answers: AnswerMetrics::start(Surface::EventStream, &state),
            state,
            subscription,
            position: since.map_or(page.position, |since| since.seq),
            generation,
            next: NextStep::Wait,
            recheck_pending: false,
            ping_at: now + PING_INTERVAL,
            last_chunk_at: now,
            _permits: permits,
            _open: OpenStreamGauge::increment(),
        };
        let mut events = EventBuffer::default();
        events.start(&stream.cursor());
        stream.push_page(&mut events, &page);
        Ok((stream, events.into_text().into()))
    }

    /// The next chunk to send; `None` where the stream ends.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if self.last_chunk_at.elapsed() > RING_MAX_AGE && self.next == NextStep::Wait {
            self.next = NextStep::Read;
        }
        loop {
            let notified = match self.next {
                NextStep::Read => self.subscription.notified().now_or_never().unwrap_or_default(),
                NextStep::Wait | NextStep::Retry => self.subscription.notified().await,
            };
            if notified.drain {
                return None;
            }
            // Boxed: a waiting stream does not keep the memory that reading needs.
            let events = Box::pin(self.advance(notified)).await.ok()?;
            if events.len() > 0 {
                self.last_chunk_at = Instant::now();
                return Some(events.into_text().into());
            }
        }
    }

    async fn advance(&mut self, notified: Notifications) -> Result<EventBuffer, AccessLost> {
        let timer = StageTimer::start(Stage::Answer);
        let mut events = EventBuffer::default();
        self.begin_anew();
        self.recheck_pending |= notified.recheck || self.state.arrivals.is_stale();
        if self.recheck_pending
            || self.next != NextStep::Wait
            || !self.push_recent(&mut events, notified.arrived)
        {
            self.read(&mut events).await?;
        }
        let now = Instant::now();
        if now >= self.ping_at {
            self.ping_at = now + PING_INTERVAL;
            events.ping(&self.cursor());
        }
        let wake_at = if self.next == NextStep::Retry { now + RETRY_DELAY } else { self.ping_at };
        self.subscription.schedule(wake_at);
        self.answers.record(&self.state, timer, events.messages().iter().copied());
        Ok(events)
    }

    /// Goes on in the current generation of the stream, where another one began.
    fn begin_anew(&mut self) {
        let position = Position { generation: self.generation, seq: self.position };
        if let Some(renewed) = self.state.arrivals.generations().renew(position) {
            (self.generation, self.position) = (renewed.generation, renewed.seq);
            self.next = NextStep::Read;
        }
    }

    /// Sends what the ring has; `false` where the store has to be read.
    fn push_recent(&mut self, events: &mut EventBuffer, first: Option<i64>) -> bool {
        let Some((messages, up_to)) = self.subscription.recent(self.position, first) else { return false };
        for row in messages.iter().filter_map(|message| message.row.as_ref()) {
            self.push_message(events, row);
        }
        self.position = self.position.max(up_to);
        true
    }

    /// Sends the next page of the store.
    async fn read(&mut self, events: &mut EventBuffer) -> Result<(), AccessLost> {
        match self.read_page().await {
            Ok(page) => self.push_page(events, &page),
            Err(ApiError::Unavailable | ApiError::Internal) => self.next = NextStep::Retry,
            Err(_rejected) => return Err(AccessLost),
        }
        Ok(())
    }

    async fn read_page(&mut self) -> Result<StreamPage, ApiError> {
        let (began, rechecks) = (Instant::now(), self.recheck_pending);
        if rechecks {
            self.subscription.recheck(&self.state).await?;
        }
        let scan = ScanRequest::new(ScanRange::After(self.position), PAGE_SIZE);
        let page = self.subscription.read(&self.state, self.generation, scan).await?;
        if began.elapsed() > STALE_AFTER || (!rechecks && self.state.arrivals.is_stale()) {
            // The rights that were judged may have ended meanwhile.
            return Err(ApiError::Unavailable);
        }
        self.recheck_pending = false;
        Ok(page)
    }

    fn push_page(&mut self, events: &mut EventBuffer, page: &StreamPage) {
        let mut at_end = i64::try_from(page.rows.len()).is_ok_and(|rows| rows < PAGE_SIZE);
        for row in &page.rows {
            if events.len() > CHUNK_SIZE {
                at_end = false;
                break;
            }
            self.push_message(events, row);
        }
        if at_end {
            self.position = self.position.max(page.position);
        }
        self.next = if at_end && page.subscribed { NextStep::Wait } else { NextStep::Read };
    }

    fn push_message(&mut self, events: &mut EventBuffer, row: &MessageRow) {
        self.position = row.seq;
        if self.subscription.covers(row) {
            events.new_email(&self.cursor(), row.id, &EmailSummary::from(row));
        }
    }

    fn cursor(&self) -> String {
        let generation = self.state.arrivals.generations().id(self.generation);
        self.state.cursors.seal(self.subscription.tenant(), generation, self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(_: fn(&'static mut EventStream) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn bounds_the_size_of_an_idle_stream() {
        let (stream, future) = (size_of::<EventStream>(), size_of_future(EventStream::next));
        assert!(stream <= 416 && future <= 128, "{stream} {future}");
    }
}
