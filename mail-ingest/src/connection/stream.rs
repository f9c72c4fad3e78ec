//! Reading and writing. What is read lands in a buffer of the thread and goes straight into
//! the session; a connection keeps only what the session could not use yet, so that an idle
//! one has no buffer at all.

use std::cell::RefCell;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::deadline::{Deadline, Times};
use crate::smtp::{Action, Reply, Session, reply};

/// Octets read at once.
const READ: usize = 64 << 10;
/// Replies that are kept room for between flights.
const OUT_KEPT: usize = 1 << 10;
/// How long and how much a closed connection is read on, so that its last reply arrives
/// although the client was still sending.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_OCTETS: usize = 256 << 10;

thread_local! {
    static READ_BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// What came of waiting for the client.
#[derive(Debug)]
pub(super) enum Received {
    /// Octets, and what the session made of them.
    Octets(Action),
    /// Nothing: it closed, or the connection broke.
    Gone,
    /// Nothing: say this and close.
    End(Reply),
}

/// One stream with its buffers and its deadline.
#[derive(Debug)]
pub(super) struct Wire<'a, S> {
    stream: S,
    /// Read, and not consumed by the session.
    rest: Vec<u8>,
    /// Replies of this flight.
    pub(super) out: Vec<u8>,
    deadline: Deadline<'a>,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Wire<'a, S> {
    pub(super) fn new(stream: S, times: &'a Times) -> Self {
        Self { stream, rest: Vec::new(), out: Vec::new(), deadline: Deadline::new(times) }
    }

    pub(super) fn into_stream(self) -> S {
        self.stream
    }

    /// Goes on with what is there already.
    pub(super) fn feed(&mut self, session: &mut Session) -> Action {
        let step = session.feed(&self.rest, &mut self.out);
        self.keep_from(step.consumed);
        step.action
    }

    /// Waits for octets and feeds them. An idle session also hears that the pod goes down.
    pub(super) async fn receive(&mut self, session: &mut Session, drain: &CancellationToken) -> Received {
        self.deadline.wait_for(session.waiting());
        let mut drained = std::pin::pin!(session.is_idle().then(|| drain.cancelled()));
        poll_fn(|cx| self.poll_receive(cx, session, drained.as_mut())).await
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        session: &mut Session,
        drained: Pin<&mut Option<WaitForCancellationFuture<'_>>>,
    ) -> Poll<Received> {
        match self.poll_read(cx, session) {
            Poll::Ready(Ok(Some(action))) => return Poll::Ready(Received::Octets(action)),
            Poll::Ready(Ok(None) | Err(_)) => return Poll::Ready(Received::Gone),
            Poll::Pending => {}
        }
        if let Some(drained) = drained.as_pin_mut()
            && drained.poll(cx).is_ready()
        {
            return Poll::Ready(Received::End(reply::DRAINING));
        }
        self.deadline.poll(cx).map(Received::End)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, session: &mut Session) -> Poll<io::Result<Option<Action>>> {
        READ_BUFFER.with_borrow_mut(|buffer| {
            let mut read = ReadBuf::new(buffer);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            let input = read.filled();
            if input.is_empty() {
                return Poll::Ready(Ok(None));
            }
            if !self.rest.is_empty() {
                self.rest.extend_from_slice(input);
                return Poll::Ready(Ok(Some(self.feed(session))));
            }
            let step = session.feed(input, &mut self.out);
            self.rest.extend_from_slice(&input[step.consumed..]);
            Poll::Ready(Ok(Some(step.action)))
        })
    }

    /// Sends the replies gathered so far in one write.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.deadline.wait_for_write();
        let mut sent = 0;
        poll_fn(|cx| self.poll_flush(cx, &mut sent)).await?;
        self.out.clear();
        if self.out.capacity() > OUT_KEPT {
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
                Poll::Ready(Ok(octets)) => *sent += octets,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    return self.deadline.poll(cx).map(|_| Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
    }

    /// Closes our side, and reads the other for a moment: octets that arrive at a closed socket
    /// would reset the connection and take the last reply with them.
    pub(super) async fn linger(mut self) {
        let mut left = LINGER_OCTETS;
        let read_on = async {
            self.stream.shutdown().await.ok();
            poll_fn(|cx| self.poll_discard(cx, &mut left)).await;
        };
        // Whether the client took the chance is its own affair.
        tokio::time::timeout(LINGER, read_on).await.ok();
    }

    /// Ready when the client has closed, or has sent more than anybody waits for.
    fn poll_discard(&mut self, cx: &mut Context<'_>, left: &mut usize) -> Poll<()> {
        READ_BUFFER.with_borrow_mut(|buffer| {
            while *left > 0 {
                let mut read = ReadBuf::new(buffer);
                match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read)) {
                    Ok(()) if !read.filled().is_empty() => *left = left.saturating_sub(read.filled().len()),
                    _ => break,
                }
            }
            Poll::Ready(())
        })
    }

    /// Drops what was consumed, and the room for it once nothing is left.
    fn keep_from(&mut self, consumed: usize) {
        if consumed == self.rest.len() {
            self.rest = Vec::new();
        } else {
            self.rest.drain(..consumed);
        }
    }
}
