//! Reading and writing. Input is read into a buffer of the thread and fed to the session at once; a
//! connection keeps only what the session did not consume, so that an idle one has no buffer.

use std::cell::RefCell;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture, WaitForCancellationFutureOwned};

use super::deadline::{Deadline, Timeouts};
use crate::smtp::{Action, Reply, Session, reply};

/// Bytes of a read within message data at most.
const DATA_READ_SIZE: usize = 16 << 10;
/// Bytes of a read of commands at most. The session keeps them while the client does not read its replies.
const COMMAND_READ_SIZE: usize = 4 << 10;
/// Bytes that a session reads before others get their turn: reading and scanning them takes some tens of microseconds.
const TURN: usize = 64 << 10;
/// Capacity of the reply buffer that is kept after a flush.
const OUT_RETAINED: usize = 1 << 10;
/// How long, and how many bytes, a closed connection is still read, so that the last reply arrives
/// although the client was still sending.
const LINGER_TIME: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 << 10;

thread_local! {
    static READ_BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; DATA_READ_SIZE]);
}

/// The result of waiting for input.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    /// Input was fed to the session, which requests this action.
    Input(Action),
    /// The client closed the connection, or it broke.
    Disconnected,
    /// No input in time, or the process drains, or another session gets the place: send this reply and close.
    Close(Reply),
}

/// The stream of a client with its buffers and its deadline.
#[derive(Debug)]
pub(super) struct ClientStream<'a, S> {
    stream: S,
    /// Input that the session has not consumed.
    unconsumed: Vec<u8>,
    /// Bytes that were read since others had their turn.
    read_in_turn: usize,
    /// Replies that are not sent yet.
    pub(super) out: Vec<u8>,
    deadline: Deadline<'a>,
    /// Ready when the session is ended for another one.
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> ClientStream<'a, S> {
    /// `ended` is cancelled when the session is ended for another one.
    pub(super) fn new(stream: S, timeouts: &'a Timeouts, ended: CancellationToken) -> Self {
        Self {
            stream,
            unconsumed: Vec::new(),
            read_in_turn: 0,
            out: Vec::new(),
            deadline: Deadline::new(timeouts),
            ended: Box::pin(ended.cancelled_owned()),
        }
    }

    pub(super) fn into_stream(self) -> S {
        self.stream
    }

    /// Sets the absolute end of the transaction or session, and the reply then.
    pub(super) fn end_at(&mut self, at: Instant, reply: Reply) {
        self.deadline.end_at(at, reply);
    }

    /// Feeds the unconsumed input to the session.
    pub(super) fn feed_unconsumed(&mut self, session: &mut Session) -> Action {
        let step = session.feed(&self.unconsumed, &mut self.out);
        self.discard_consumed(step.consumed);
        step.action
    }

    /// Whether the session has read as much as it may before others get their turn; then the next turn begins.
    pub(super) fn ends_turn(&mut self) -> bool {
        let ends = self.read_in_turn >= TURN;
        if ends {
            self.read_in_turn = 0;
        }
        ends
    }

    /// Waits for input and feeds it to the session. An idle session is closed when the process drains.
    pub(super) async fn receive(&mut self, session: &mut Session, drain: &CancellationToken) -> ReadOutcome {
        self.deadline.wait_for(session.awaited_input());
        let mut drained = std::pin::pin!(session.is_idle().then(|| drain.cancelled()));
        poll_fn(|cx| self.poll_receive(cx, session, drained.as_mut())).await
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        session: &mut Session,
        drained: Pin<&mut Option<WaitForCancellationFuture<'_>>>,
    ) -> Poll<ReadOutcome> {
        if self.ended.as_mut().poll(cx).is_ready() {
            return Poll::Ready(ReadOutcome::Close(reply::SESSION_REPLACED));
        }
        match self.poll_read(cx, session) {
            Poll::Ready(Ok(Some(action))) => return Poll::Ready(ReadOutcome::Input(action)),
            Poll::Ready(Ok(None) | Err(_)) => return Poll::Ready(ReadOutcome::Disconnected),
            Poll::Pending => {}
        }
        if let Some(drained) = drained.as_pin_mut()
            && drained.poll(cx).is_ready()
        {
            return Poll::Ready(ReadOutcome::Close(reply::DRAINING));
        }
        self.deadline.poll(cx).map(ReadOutcome::Close)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, session: &mut Session) -> Poll<io::Result<Option<Action>>> {
        READ_BUFFER.with_borrow_mut(|buffer| {
            let in_data = session.awaited_input().data.is_some();
            let size = if in_data { DATA_READ_SIZE } else { COMMAND_READ_SIZE };
            let mut read = ReadBuf::new(&mut buffer[..size]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            let input = read.filled();
            if input.is_empty() {
                return Poll::Ready(Ok(None));
            }
            self.read_in_turn += input.len();
            if !self.unconsumed.is_empty() {
                self.unconsumed.extend_from_slice(input);
                return Poll::Ready(Ok(Some(self.feed_unconsumed(session))));
            }
            let step = session.feed(input, &mut self.out);
            self.unconsumed.extend_from_slice(&input[step.consumed..]);
            Poll::Ready(Ok(Some(step.action)))
        })
    }

    /// Sends all replies, in one write if possible.
    ///
    /// # Errors
    /// The connection broke. [`io::ErrorKind::TimedOut`]: the client does not read its replies, or the session is
    /// ended for another one meanwhile.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.deadline.wait_for_write();
        let mut sent = 0;
        poll_fn(|cx| self.poll_flush(cx, &mut sent)).await?;
        self.out.clear();
        if self.out.capacity() > OUT_RETAINED {
            self.out = Vec::new();
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, sent: &mut usize) -> Poll<io::Result<()>> {
        loop {
            let stream = Pin::new(&mut self.stream);
            let progress = if *sent < self.out.len() {
                stream.poll_write(cx, &self.out[*sent..])
            } else {
                stream.poll_flush(cx).map_ok(|()| 0)
            };
            match progress {
                Poll::Ready(Ok(0)) if *sent < self.out.len() => {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(written)) => *sent += written,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    ready!(self.poll_end(cx));
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
    }

    /// Ready when the session must end although the client does not read its replies.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.ended.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => self.deadline.poll(cx).map(|_| ()),
        }
    }

    /// Closes our side, and still reads for a moment: data that arrives at a closed socket would reset
    /// the connection, and the client would lose the last reply.
    pub(super) async fn linger(mut self) {
        let mut remaining = LINGER_BYTES;
        let discard = async {
            self.stream.shutdown().await.ok();
            poll_fn(|cx| self.poll_discard(cx, &mut remaining)).await;
        };
        // A client that does not close in time loses the connection.
        tokio::time::timeout(LINGER_TIME, discard).await.ok();
    }

    /// Ready when the client has closed, or has sent `remaining` bytes.
    fn poll_discard(&mut self, cx: &mut Context<'_>, remaining: &mut usize) -> Poll<()> {
        READ_BUFFER.with_borrow_mut(|buffer| {
            while *remaining > 0 {
                let mut read = ReadBuf::new(buffer);
                match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read)) {
                    Ok(()) if !read.filled().is_empty() => {
                        *remaining = remaining.saturating_sub(read.filled().len());
                    }
                    _ => break,
                }
            }
            Poll::Ready(())
        })
    }

    /// Removes consumed input, and frees the buffer once it is empty.
    fn discard_consumed(&mut self, consumed: usize) {
        if consumed == self.unconsumed.len() {
            self.unconsumed = Vec::new();
        } else {
            self.unconsumed.drain(..consumed);
        }
    }
}
