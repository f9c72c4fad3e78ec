//! The deadlines of a connection: for a request's header section, for the next request, for a client
//! that does not read its response or reads it too slowly, and for one that keeps sending after it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How long a connection may be idle: longer than proxies keep idle connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// How long a client may read nothing of what waits to be written.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long output waits for a client before the rate at which it reads is judged, again and again.
const DRAIN_WINDOW: Duration = Duration::from_secs(30);
/// An unread body of at most so many bytes has arrived with its header section, and hyper skips it.
const SKIPPED_MAX: u64 = 4 << 10;
/// How long a client may keep sending after the last response.
pub(crate) const LINGER_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of that input which are read and dropped.
const LINGER_MAX: usize = 1 << 20;

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// A header section is being received.
    Header,
    /// No byte of the next request has arrived.
    Idle,
    /// A request is in flight; its handler has deadlines of its own.
    InFlight,
    /// Every request is answered, and the client still sends.
    Lingering,
    /// The connection is a WebSocket, which has deadlines of its own.
    Upgraded,
}

#[derive(Debug)]
struct ActivityState {
    phase: Phase,
    since: Instant,
    stalled_since: Option<Instant>,
    drain: DrainWindow,
    /// Length of the last request's body in bytes, where it was not read to its end; `u64::MAX` where
    /// the length is unknown.
    unread_body: Option<u64>,
    /// Whether the request in flight ends when the client closes its side.
    ends_with_input: bool,
    /// Wakes the connection, where the client has closed its side and the request in flight is still answered.
    input_ended: Option<Waker>,
}

/// What a client has read while output waited for it. Time in which nothing waits does not count.
#[derive(Debug, Clone, Copy, Default)]
struct DrainWindow {
    /// Since when output has been waiting, where it waits.
    waiting_since: Option<Instant>,
    /// How long output waited before that.
    waited: Duration,
    /// Bytes that were written.
    written: u64,
    /// Whether a whole window had too few of them.
    too_slow: bool,
}

impl DrainWindow {
    fn on_write(&mut self, written: Option<u64>, least: u64) {
        let now = Instant::now();
        match written {
            None => _ = self.waiting_since.get_or_insert(now),
            Some(bytes) => {
                self.waited += self.waiting_since.take().map_or(Duration::ZERO, |since| now - since);
                self.written += bytes;
                if self.waited >= DRAIN_WINDOW {
                    self.judge(least);
                }
            }
        }
    }

    /// When to cut the connection if nothing else is written.
    fn deadline(&mut self, least: u64) -> Option<Instant> {
        let now = Instant::now();
        if self.too_slow {
            return Some(now);
        }
        let end = self.waiting_since? + DRAIN_WINDOW.saturating_sub(self.waited);
        // A window with enough of them is followed by another.
        if end <= now && self.written >= least {
            *self = Self { waiting_since: Some(now), ..Self::default() };
            return Some(now + DRAIN_WINDOW);
        }
        Some(end)
    }

    fn judge(&mut self, least: u64) {
        *self = Self { too_slow: self.written < least, ..Self::default() };
    }
}

/// What a connection is waiting for; shared between its socket and its requests.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    state: Arc<Mutex<ActivityState>>,
    limits: ActivityLimits,
}

/// What a client has to keep to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActivityLimits {
    /// For the header section of a request.
    pub(crate) header_timeout: Duration,
    /// Bytes a second that it reads at least while output waits for it.
    pub(crate) min_drain_rate: u64,
}

impl ActivityLimits {
    fn least_drained(self) -> u64 {
        self.min_drain_rate.saturating_mul(DRAIN_WINDOW.as_secs())
    }
}

impl Activity {
    /// A new connection has `header_timeout` for the header section of its first request.
    pub(crate) fn new(limits: ActivityLimits) -> Self {
        let state = ActivityState {
            phase: Phase::Header,
            since: Instant::now(),
            stalled_since: None,
            drain: DrainWindow::default(),
            unread_body: None,
            ends_with_input: false,
            input_ended: None,
        };
        Self { state: Arc::new(Mutex::new(state)), limits }
    }

    /// When to cut the connection, in its current state.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let mut state = self.lock();
        let stalled = state.stalled_since.map(|since| since + STALL_TIMEOUT);
        let slow = state.drain.deadline(self.limits.least_drained());
        let waiting = match state.phase {
            Phase::Header => Some(state.since + self.limits.header_timeout),
            Phase::Idle => Some(state.since + IDLE_TIMEOUT),
            Phase::InFlight | Phase::Upgraded => None,
            Phase::Lingering => Some(state.since + LINGER_TIMEOUT),
        };
        stalled.into_iter().chain(slow).chain(waiting).min()
    }

    /// Why a connection is cut now, as the metric has it.
    pub(super) fn cut_reason(&self) -> &'static str {
        let state = self.lock();
        match state.phase {
            _ if state.stalled_since.is_some() || state.drain.too_slow => "slow_reader",
            Phase::Header => "header_timeout",
            Phase::Idle => "idle",
            Phase::InFlight | Phase::Lingering | Phase::Upgraded => "lingering",
        }
    }

    /// A request is in flight until the returned guard is dropped.
    pub(super) fn begin_request(&self) -> RequestInFlight {
        self.enter(Phase::InFlight);
        let mut state = self.lock();
        state.ends_with_input = false;
        state.input_ended = None;
        RequestInFlight(self.clone())
    }

    /// The request in flight is one that waits: it ends when the client closes its side, which nobody can tell from a client
    /// that is gone. Any other is answered.
    pub(super) fn end_with_input(&self) {
        self.lock().ends_with_input = true;
        self.tell_end_of_input();
    }

    /// Lets the connection read again where it was not told that the client has closed its side.
    fn tell_end_of_input(&self) {
        if let Some(connection) = self.lock().input_ended.take() {
            connection.wake();
        }
    }

    /// Whether the connection is told only after the request in flight that the client has closed its side. A body that is
    /// not complete by then is waited for as any other that does not arrive.
    fn defers_end_of_input(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        let defers = matches!(state.phase, Phase::InFlight) && !state.ends_with_input;
        if defers {
            state.input_ended = Some(cx.waker().clone());
        }
        defers
    }

    /// The request in flight upgrades the connection: no other follows.
    pub(super) fn upgrade(&self) {
        self.enter(Phase::Upgraded);
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Upgraded) {
            return;
        }
        state.phase = phase;
        state.since = Instant::now();
    }

    fn on_read(&self) {
        if matches!(self.lock().phase, Phase::Idle) {
            self.enter(Phase::Header);
        }
    }

    fn on_write(&self, written: &Poll<io::Result<usize>>) {
        let mut state = self.lock();
        let bytes = match written {
            Poll::Pending => None,
            Poll::Ready(result) => Some(result.as_ref().map_or(0, |bytes| *bytes as u64)),
        };
        state.drain.on_write(bytes, self.limits.least_drained());
        match written {
            Poll::Pending => {
                state.stalled_since.get_or_insert_with(Instant::now);
            }
            Poll::Ready(_) => state.stalled_since = None,
        }
    }

    /// Whether so much of the last request's body is unread that no request can follow.
    pub(super) fn has_unread_body(&self) -> bool {
        self.lock().unread_body.is_some_and(|bytes| bytes > SKIPPED_MAX)
    }

    /// Since when the client has been reading nothing of what waits to be written.
    pub(super) fn stalled_since(&self) -> Option<Instant> {
        self.lock().stalled_since
    }

    /// Records that the client may still send after the last response.
    pub(super) fn expect_more_input(&self) {
        self.lock().unread_body = Some(u64::MAX);
    }

    /// Whether the client may still send after the last response; if so, lingering begins.
    fn begin_lingering(&self) -> bool {
        let mut state = self.lock();
        let lingers = state.unread_body.is_some();
        if lingers && !matches!(state.phase, Phase::Lingering) {
            state.phase = Phase::Lingering;
            state.since = Instant::now();
        }
        lingers
    }

    fn lock(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's body, which records when it was read to its end.
pub(super) struct RequestBody {
    body: Incoming,
    activity: Activity,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, activity: Activity) -> Self {
        let length = body.size_hint().exact().unwrap_or(u64::MAX);
        activity.lock().unread_body = (!body.is_end_stream()).then_some(length);
        Self { body, activity }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.activity.lock().unread_body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Marks a request as in flight.
pub(super) struct RequestInFlight(Activity);

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.0.enter(Phase::Idle);
        self.0.tell_end_of_input();
    }
}

/// A response's body; the request is in flight until the body is written.
pub(super) struct ResponseBody {
    pub(super) body: Body,
    pub(super) _in_flight: RequestInFlight,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket that records reads and writes in an [`Activity`].
pub(super) struct WatchedIo<T> {
    io: T,
    activity: Activity,
    /// Bytes that were read and dropped after the last response.
    lingered: usize,
}

impl<T: AsyncRead + AsyncWrite + Unpin> WatchedIo<T> {
    pub(super) fn new(io: T, activity: Activity) -> Self {
        Self { io, activity, lingered: 0 }
    }

    /// Reads until the client closes its side: a socket that is closed with unread input is reset, and
    /// the client may never receive the response that explains the error.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut scratch = [0; 4096];
        while self.lingered < LINGER_MAX {
            let mut unread = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut self.io).poll_read(cx, &mut unread))?;
            match unread.filled().len() {
                0 => break,
                read => self.lingered += read,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WatchedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = ready!(Pin::new(&mut self.io).poll_read(cx, buf));
        if buf.filled().len() > before {
            self.activity.on_read();
        } else if result.is_ok() && self.activity.defers_end_of_input(cx) {
            // The connection reads again after the response.
            return Poll::Pending;
        }
        Poll::Ready(result)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WatchedIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.activity.on_write(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
        if self.activity.begin_lingering() { self.poll_linger(cx) } else { Poll::Ready(Ok(())) }
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.activity.on_write(&written);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn applies_a_deadline_to_each_phase() {
        let header_timeout = Duration::from_secs(10);
        let activity = Activity::new(ActivityLimits { header_timeout, min_drain_rate: 1 });
        let begun = Instant::now();
        assert_eq!(activity.deadline(), Some(begun + header_timeout));
        tokio::time::advance(Duration::from_secs(3)).await;
        activity.on_read();
        assert_eq!(
            activity.deadline(),
            Some(begun + header_timeout),
            "further bytes do not extend the deadline"
        );
        let in_flight = activity.begin_request();
        assert_eq!(activity.deadline(), None);
        activity.on_write(&Poll::Pending);
        tokio::time::advance(Duration::from_secs(1)).await;
        activity.on_write(&Poll::Pending);
        assert_eq!(activity.deadline(), Some(Instant::now() - Duration::from_secs(1) + STALL_TIMEOUT));
        activity.on_write(&Poll::Ready(Ok(1)));
        drop(in_flight);
        assert_eq!(activity.deadline(), Some(Instant::now() + IDLE_TIMEOUT));
        activity.on_read();
        assert_eq!(activity.deadline(), Some(Instant::now() + header_timeout));
    }

    /// Whether a connection is cut within five minutes whose client reads `bytes` every so many seconds.
    async fn is_cut(min_drain_rate: u64, bytes: usize, every: u64) -> bool {
        let limits = ActivityLimits { header_timeout: Duration::from_secs(10), min_drain_rate };
        let activity = Activity::new(limits);
        let _in_flight = activity.begin_request();
        for _ in 0..300 / every {
            activity.on_write(&Poll::Pending);
            let next = Instant::now() + Duration::from_secs(every);
            while let Some(deadline) = activity.deadline().filter(|deadline| *deadline <= next) {
                tokio::time::sleep_until(deadline).await;
                if activity.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                    assert_eq!(activity.cut_reason(), "slow_reader");
                    return true;
                }
            }
            tokio::time::sleep_until(next).await;
            activity.on_write(&Poll::Ready(Ok(bytes)));
        }
        false
    }

    #[tokio::test(start_paused = true)]
    async fn cuts_a_client_that_reads_too_slowly() {
        assert!(is_cut(1_000, 900, 1).await);
        assert!(!is_cut(1_000, 1_100, 1).await);
        assert!(is_cut(1_000, 15_000, 20).await);
        assert!(!is_cut(1_000, 40_000, 20).await);
        assert!(is_cut(1_000, 1_000_000, 31).await, "nothing is read for 30 s");
    }

    #[tokio::test(start_paused = true)]
    async fn does_not_count_time_in_which_nothing_waits() {
        let limits = ActivityLimits { header_timeout: Duration::from_secs(10), min_drain_rate: 1_000 };
        let activity = Activity::new(limits);
        let _in_flight = activity.begin_request();
        for _ in 0..100 {
            activity.on_write(&Poll::Ready(Ok(10)));
            tokio::time::advance(Duration::from_secs(20)).await;
            assert_eq!(activity.deadline(), None);
        }
    }
}
