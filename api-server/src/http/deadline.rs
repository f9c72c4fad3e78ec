//! The deadlines of a connection: for a request's header section, for the next request, for a client
//! that does not read its response, and for one that keeps sending after it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How long a connection may be idle: longer than proxies keep idle connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// How long a client may read nothing of what waits to be written.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(30);
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
}

#[derive(Debug)]
struct ActivityState {
    phase: Phase,
    since: Instant,
    stalled_since: Option<Instant>,
    /// Length of the last request's body in bytes, where it was not read to its end; `u64::MAX` where
    /// the length is unknown.
    unread_body: Option<u64>,
}

/// What a connection is waiting for; shared between its socket and its requests.
#[derive(Debug, Clone)]
pub(super) struct Activity {
    state: Arc<Mutex<ActivityState>>,
    header_timeout: Duration,
}

impl Activity {
    /// A new connection has `header_timeout` for the header section of its first request.
    pub(super) fn new(header_timeout: Duration) -> Self {
        let state = ActivityState {
            phase: Phase::Header,
            since: Instant::now(),
            stalled_since: None,
            unread_body: None,
        };
        Self { state: Arc::new(Mutex::new(state)), header_timeout }
    }

    /// When to cut the connection, in its current state.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let state = self.lock();
        let stalled = state.stalled_since.map(|since| since + STALL_TIMEOUT);
        let waiting = match state.phase {
            Phase::Header => Some(state.since + self.header_timeout),
            Phase::Idle => Some(state.since + IDLE_TIMEOUT),
            Phase::InFlight => None,
            Phase::Lingering => Some(state.since + LINGER_TIMEOUT),
        };
        stalled.into_iter().chain(waiting).min()
    }

    /// A request is in flight until the returned guard is dropped.
    pub(super) fn begin_request(&self) -> InFlight {
        self.enter(Phase::InFlight);
        InFlight(self.clone())
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = phase;
        state.since = Instant::now();
    }

    fn on_read(&self) {
        if matches!(self.lock().phase, Phase::Idle) {
            self.enter(Phase::Header);
        }
    }

    fn on_write<T>(&self, written: &Poll<io::Result<T>>) {
        let mut state = self.lock();
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
pub(super) struct InFlight(Activity);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.enter(Phase::Idle);
    }
}

/// A response's body; the request is in flight until the body is written.
pub(super) struct ResponseBody {
    pub(super) body: Body,
    pub(super) _in_flight: InFlight,
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
        let activity = Activity::new(header_timeout);
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
        activity.on_write::<usize>(&Poll::Pending);
        tokio::time::advance(Duration::from_secs(1)).await;
        activity.on_write::<usize>(&Poll::Pending);
        assert_eq!(activity.deadline(), Some(Instant::now() - Duration::from_secs(1) + STALL_TIMEOUT));
        activity.on_write(&Poll::Ready(Ok(1)));
        drop(in_flight);
        assert_eq!(activity.deadline(), Some(Instant::now() + IDLE_TIMEOUT));
        activity.on_read();
        assert_eq!(activity.deadline(), Some(Instant::now() + header_timeout));
    }
}
