//! When a connection has waited long enough: for a request's header section, for a next
//! request, for a client that does not read its answer, or for one that still sends after it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How long a connection may be kept without a request: longer than what proxies keep.
const IDLE: Duration = Duration::from_secs(75);
/// How long a client may read nothing of an answer that waits for it.
pub(crate) const STALLED: Duration = Duration::from_secs(30);
/// A body of so many octets that nobody read comes with its header section, and is skipped.
const SKIPPED: u64 = 4 << 10;
/// How long a client may go on sending what nobody reads any more.
pub(crate) const LINGER: Duration = Duration::from_secs(5);
/// Octets of that which are read and dropped.
const LINGER_MAX: usize = 1 << 20;

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// A header section is on its way.
    Head,
    /// Nothing of the next request has come.
    Idle,
    /// A request is in hand; its handler looks after its own time.
    Busy,
    /// All is answered, and the client still sends.
    Lingering,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    stalled_since: Option<Instant>,
    /// Octets of the last request's body, where it was not read to its end; `u64::MAX` where
    /// nobody knows.
    body_left: Option<u64>,
}

/// What a connection is waiting for; shared between its socket and its requests.
#[derive(Debug, Clone)]
pub(super) struct Activity {
    state: Arc<Mutex<State>>,
    head: Duration,
}

impl Activity {
    /// A connection that just opened has `head` for the header section of its first request.
    pub(super) fn new(head: Duration) -> Self {
        let state = State { phase: Phase::Head, since: Instant::now(), stalled_since: None, body_left: None };
        Self { state: Arc::new(Mutex::new(state)), head }
    }

    /// When to cut the connection, as things stand.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let state = self.lock();
        let stalled = state.stalled_since.map(|since| since + STALLED);
        let waiting = match state.phase {
            Phase::Head => Some(state.since + self.head),
            Phase::Idle => Some(state.since + IDLE),
            Phase::Busy => None,
            Phase::Lingering => Some(state.since + LINGER),
        };
        stalled.into_iter().chain(waiting).min()
    }

    /// A request is in hand until the returned value is dropped.
    pub(super) fn begin(&self) -> InHand {
        self.enter(Phase::Busy);
        InHand(self.clone())
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = phase;
        state.since = Instant::now();
    }

    fn received(&self) {
        if matches!(self.lock().phase, Phase::Idle) {
            self.enter(Phase::Head);
        }
    }

    fn wrote<T>(&self, written: &Poll<io::Result<T>>) {
        let mut state = self.lock();
        match written {
            Poll::Pending => {
                state.stalled_since.get_or_insert_with(Instant::now);
            }
            Poll::Ready(_) => state.stalled_since = None,
        }
    }

    /// Whether so much of the last request's body was not read that no request can follow it.
    pub(super) fn left_a_body(&self) -> bool {
        self.lock().body_left.is_some_and(|octets| octets > SKIPPED)
    }

    /// Since when the client has been reading nothing of what waits for it.
    pub(super) fn stalled_since(&self) -> Option<Instant> {
        self.lock().stalled_since
    }

    /// The client may still be sending when all is said.
    pub(super) fn expect_more(&self) {
        self.lock().body_left = Some(u64::MAX);
    }

    /// Whether the client may still be sending though all is answered.
    fn lingers(&self) -> bool {
        let mut state = self.lock();
        let lingers = state.body_left.is_some();
        if lingers && !matches!(state.phase, Phase::Lingering) {
            state.phase = Phase::Lingering;
            state.since = Instant::now();
        }
        lingers
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's body, which tells when it was read to its end.
pub(super) struct RequestBody {
    body: Incoming,
    activity: Activity,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, activity: Activity) -> Self {
        let octets = body.size_hint().exact().unwrap_or(u64::MAX);
        activity.lock().body_left = (!body.is_end_stream()).then_some(octets);
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
            self.activity.lock().body_left = None;
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

/// A request in hand.
pub(super) struct InHand(Activity);

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.enter(Phase::Idle);
    }
}

/// An answer's body; the request is in hand until it is written.
pub(super) struct AnswerBody {
    pub(super) body: Body,
    pub(super) _in_hand: InHand,
}

impl HttpBody for AnswerBody {
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

/// A socket that tells what happens on it.
pub(super) struct WatchedIo<T> {
    io: T,
    activity: Activity,
    /// Octets that were read and dropped after the last answer.
    lingered: usize,
}

impl<T: AsyncRead + AsyncWrite + Unpin> WatchedIo<T> {
    pub(super) fn new(io: T, activity: Activity) -> Self {
        Self { io, activity, lingered: 0 }
    }

    /// Reads on until the client is done: a socket that is closed with octets unread is reset,
    /// and the client may never see the answer that says what was wrong with them.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut scratch = [0; 4096];
        while self.lingered < LINGER_MAX {
            let mut unread = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut self.io).poll_read(cx, &mut unread))?;
            match unread.filled().len() {
                0 => break,
                octets => self.lingered += octets,
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
            self.activity.received();
        }
        Poll::Ready(result)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WatchedIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.activity.wrote(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
        if self.activity.lingers() { self.poll_linger(cx) } else { Poll::Ready(Ok(())) }
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
        self.activity.wrote(&written);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_its_time() {
        let head = Duration::from_secs(10);
        let activity = Activity::new(head);
        let begun = Instant::now();
        assert_eq!(activity.deadline(), Some(begun + head));
        tokio::time::advance(Duration::from_secs(3)).await;
        activity.received();
        assert_eq!(activity.deadline(), Some(begun + head), "octets that trickle in win no time");
        let in_hand = activity.begin();
        assert_eq!(activity.deadline(), None);
        activity.wrote::<usize>(&Poll::Pending);
        tokio::time::advance(Duration::from_secs(1)).await;
        activity.wrote::<usize>(&Poll::Pending);
        assert_eq!(activity.deadline(), Some(Instant::now() - Duration::from_secs(1) + STALLED));
        activity.wrote(&Poll::Ready(Ok(1)));
        drop(in_hand);
        assert_eq!(activity.deadline(), Some(Instant::now() + IDLE));
        activity.received();
        assert_eq!(activity.deadline(), Some(Instant::now() + head));
    }
}
