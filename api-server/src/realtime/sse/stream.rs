//! One open stream: what it sends next.

use std::time::Duration;

use axum::body::Bytes;
use tempmail_admission::Share;
use tempmail_bus::Permit;
use tokio::time::Instant;
use uuid::Uuid;

use super::event::EventBuffer;
use crate::http::error::ApiError;
use crate::message::EmailSummary;
use crate::realtime::answer::{AnswerMetrics, WaitMode};
use crate::realtime::follower::{Batch, Followed, Follower};
use crate::realtime::scope::ScopeSource;
use crate::state::AppState;

/// Time between two keep-alive comments.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Messages that are read from the store at a time.
const PAGE_SIZE: i64 = 100;
/// Bytes after which a page is sent, and the rest of it read again.
const CHUNK_SIZE: usize = 64 << 10;

/// See the module.
pub(super) struct EventStream {
    state: AppState,
    follower: Follower<ScopeSource>,
    answers: AnswerMetrics,
    _permits: (Share<Uuid>, Permit),
    _open: OpenStreamGauge,
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

impl EventStream {
    /// Opens a stream of what `follower` gives. Returns its first chunk, too.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] where the caller may not read; Postgres is unavailable.
    pub(super) async fn open(
        state: AppState,
        mut follower: Follower<ScopeSource>,
        permits: (Share<Uuid>, Permit),
    ) -> Result<(Self, Bytes), ApiError> {
        let first = follower.first(&state, PAGE_SIZE).await?;
        follower.schedule(Instant::now() + PING_INTERVAL);
        let answers = AnswerMetrics::start(WaitMode::EventStream, &state);
        let open = OpenStreamGauge::increment();
        let mut stream = Self { state, follower, answers, _permits: permits, _open: open };
        let mut events = EventBuffer::default();
        let start = stream.follower.cursor_after(&stream.state, first.after);
        events.start(&start);
        stream.add(&mut events, &first);
        Ok((stream, events.into_text().into()))
    }

    /// The next chunk to send; `None` where the stream ends.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut events = EventBuffer::default();
            match self.follower.next(&self.state, PAGE_SIZE).await {
                Followed::Batch(batch) => self.add(&mut events, &batch),
                Followed::Due => {
                    events.ping(&self.follower.cursor(&self.state));
                    self.follower.schedule(Instant::now() + PING_INTERVAL);
                }
                Followed::Drain | Followed::Lost(_) => return None,
            }
            if events.len() > 0 {
                return Some(events.into_text().into());
            }
        }
    }

    fn add(&mut self, events: &mut EventBuffer, batch: &Batch) {
        let mut last = batch.after;
        for row in batch.messages() {
            if events.len() > CHUNK_SIZE {
                self.follower.continue_after(last);
                break;
            }
            let cursor = self.follower.cursor_after(&self.state, row.seq);
            events.new_email(&cursor, row.id, &EmailSummary::from(row));
            last = row.seq;
        }
        if let Some(timer) = batch.timer {
            self.answers.record(&self.state, timer, events.messages().iter().copied());
        }
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
        assert!(stream <= 512 && future <= 256, "{stream} {future}");
    }
}
