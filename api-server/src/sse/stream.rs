//! One open stream: where it stands, and what it sends next.
//!
//! It has sent everything up to the place where it stands. What comes after is read from the ring
//! of recent arrivals; from the store where that is not enough, where rights may have changed, and
//! while the store was away, until it is caught up.

use std::time::Duration;

use axum::body::Bytes;
use futures_util::FutureExt as _;
use tempmail_bus::Permit;
use tempmail_store::{MessageRow, ScanRange};
use tokio::time::Instant;

use super::frame::Frames;
use super::place::Place;
use crate::arrivals::Woken;
use crate::error::V1Error;
use crate::listener::{Listener, Page};
use crate::state::AppState;
use crate::token_api::summary::EmailSummary;

/// Time between two signs of life.
const PING: Duration = Duration::from_secs(15);
/// Time until the store is asked again when it was away.
const RETRY: Duration = Duration::from_secs(1);
/// Messages that are read from the store at once.
const PAGE: i64 = 100;
/// Octets after which a page is sent, and the rest of it read again.
const CHUNK: usize = 64 << 10;
/// Whoever takes so long to ask for more is sent nothing from the ring: some of what came
/// meanwhile may be deleted by now.
const STALE: Duration = Duration::from_secs(2);

/// See the module.
pub(super) struct EventStream {
    state: AppState,
    listener: Listener,
    /// Everything up to here is sent.
    reached: i64,
    next: Next,
    /// Whether the caller's token is to be looked at again.
    doubted: bool,
    ping_at: Instant,
    /// When something was last handed out to be sent.
    handed_at: Instant,
    _places: (Place, Permit),
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Wait, then read the ring.
    Wait,
    /// Read on in the store.
    Read,
    /// Wait, then try the store again.
    TryAgain,
}

/// The caller may not read any more.
struct Ended;

impl EventStream {
    /// A stream after `since`, or after everything that is there now; and its first octets.
    ///
    /// # Errors
    /// [`V1Error::NotFound`] where the caller may not read, or Postgres is away.
    pub(super) async fn begin(
        state: AppState,
        mut listener: Listener,
        since: Option<i64>,
        places: (Place, Permit),
    ) -> Result<(Self, Bytes), V1Error> {
        // Nothing is after the end of the stream: what is read is where it stands.
        let (after, limit) = since.map_or((i64::MAX, 1), |since| (since, PAGE));
        let page = listener.read(&state, ScanRange::After(after), limit).await?;
        let now = Instant::now();
        listener.wake_at(now + PING);
        let mut stream = Self {
            state,
            listener,
            reached: since.unwrap_or(page.position),
            next: Next::Wait,
            doubted: false,
            ping_at: now + PING,
            handed_at: now,
            _places: places,
        };
        let mut frames = Frames::default();
        frames.greet(&stream.cursor());
        stream.send(&mut frames, &page);
        Ok((stream, frames.into_text().into()))
    }

    /// What is to be sent next; `None` where the stream ends.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if self.handed_at.elapsed() > STALE && self.next == Next::Wait {
            self.next = Next::Read;
        }
        loop {
            let woken = match self.next {
                Next::Read => self.listener.woken().now_or_never().unwrap_or_default(),
                Next::Wait | Next::TryAgain => self.listener.woken().await,
            };
            if woken.drain {
                return None;
            }
            // Boxed: while it waits, a stream does not keep the room that reading takes.
            let frames = Box::pin(self.look(woken)).await.ok()?;
            if frames.len() > 0 {
                self.handed_at = Instant::now();
                return Some(frames.into_text().into());
            }
        }
    }

    async fn look(&mut self, woken: Woken) -> Result<Frames, Ended> {
        let mut frames = Frames::default();
        self.doubted |= woken.recheck;
        if self.doubted || self.next != Next::Wait || !self.take_recent(&mut frames, woken.arrived) {
            self.read(&mut frames).await?;
        }
        let now = Instant::now();
        if now >= self.ping_at {
            self.ping_at = now + PING;
            frames.ping(&self.cursor());
        }
        let wake_at = if self.next == Next::TryAgain { now + RETRY } else { self.ping_at };
        self.listener.wake_at(wake_at);
        Ok(frames)
    }

    /// Sends what the ring has; `false` where the store has to be read.
    fn take_recent(&mut self, frames: &mut Frames, first: Option<i64>) -> bool {
        let Some((arrived, up_to)) = self.listener.recent(self.reached, first) else { return false };
        for row in arrived.iter().filter_map(|arrived| arrived.row.as_ref()) {
            self.send_one(frames, row);
        }
        self.reached = self.reached.max(up_to);
        true
    }

    /// Sends the next page of the store.
    async fn read(&mut self, frames: &mut Frames) -> Result<(), Ended> {
        match self.read_page().await {
            Ok(page) => self.send(frames, &page),
            Err(V1Error::Unavailable | V1Error::Internal) => self.next = Next::TryAgain,
            Err(_not_the_callers) => return Err(Ended),
        }
        Ok(())
    }

    async fn read_page(&mut self) -> Result<Page, V1Error> {
        if self.doubted {
            self.listener.recheck(&self.state).await?;
            self.doubted = false;
        }
        self.listener.read(&self.state, ScanRange::After(self.reached), PAGE).await
    }

    fn send(&mut self, frames: &mut Frames, page: &Page) {
        let mut is_whole = i64::try_from(page.rows.len()).is_ok_and(|rows| rows < PAGE);
        for row in &page.rows {
            if frames.len() > CHUNK {
                is_whole = false;
                break;
            }
            self.send_one(frames, row);
        }
        if is_whole {
            self.reached = self.reached.max(page.position);
        }
        self.next = if is_whole && page.settled { Next::Wait } else { Next::Read };
    }

    fn send_one(&mut self, frames: &mut Frames, row: &MessageRow) {
        self.reached = row.seq;
        if self.listener.shows(row) {
            frames.new_email(&self.cursor(), &EmailSummary::from(row));
        }
    }

    fn cursor(&self) -> String {
        self.state.cursors.seal(self.listener.tenant(), self.reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(_: fn(&'static mut EventStream) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_idle_stream_is_small() {
        let (stream, future) = (size_of::<EventStream>(), size_of_future(EventStream::next));
        assert!(stream <= 384 && future <= 128, "{stream} {future}");
    }
}
