//! A WebSocket with small buffers, whose client may be slow.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, ready};

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::end::End;
use crate::arrivals::{Waiter, Woken};
use crate::server::{Connection, LINGER};

/// Octets of a message from a client; it has but one to send.
const MESSAGE_MAX: usize = 4 << 10;
/// Octets that are read at a time. A socket keeps this buffer as long as it lives.
const READ_BUFFER: usize = 1 << 10;
/// Octets that are gathered before they are written.
const WRITE_BUFFER: usize = 1 << 10;
/// Octets that wait for a client at most; more than the longest message.
const WRITE_BUFFER_MAX: usize = 32 << 10;

/// What a client sent.
#[derive(Debug)]
pub(super) enum Frame {
    /// A text message.
    Text(Utf8Bytes),
    /// A message that is binary or too long.
    Unreadable,
    /// A ping, whose answer is queued.
    Ping,
    /// The answer to a ping.
    Pong,
    /// The end.
    End(End),
}

/// What there is to do.
#[derive(Debug)]
pub(super) enum Event {
    /// The waiter was told something.
    Told(Woken),
    /// The client sent something.
    Frame(Frame),
    /// Everything that was queued is sent.
    Flushed,
}

/// See the module.
pub(super) struct Socket {
    /// Boxed: futures keep a copy of what is moved through them.
    stream: Box<WebSocketStream<TokioIo<Upgraded>>>,
    connection: Connection,
    unflushed: bool,
}

impl Socket {
    /// The server's side of a connection that was upgraded.
    pub(super) async fn new(upgraded: Upgraded, connection: Connection) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            .max_write_buffer_size(WRITE_BUFFER_MAX)
            .max_message_size(Some(MESSAGE_MAX))
            .max_frame_size(Some(MESSAGE_MAX));
        let stream = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config));
        Self { stream: Box::new(stream.await), connection, unflushed: false }
    }

    /// Waits for the next thing to do. What was queued is sent meanwhile.
    pub(super) async fn next(&mut self, waiter: &Waiter) -> Event {
        let mut woken = pin!(waiter.woken());
        poll_fn(|cx| {
            if let Poll::Ready(woken) = woken.as_mut().poll(cx) {
                return Poll::Ready(Event::Told(woken));
            }
            if let Poll::Ready(frame) = self.poll_frame(cx) {
                return Poll::Ready(Event::Frame(frame));
            }
            if !self.unflushed {
                return Poll::Pending;
            }
            let flushed = ready!(self.stream.poll_flush_unpin(cx));
            self.unflushed = false;
            Poll::Ready(if flushed.is_ok() { Event::Flushed } else { Event::Frame(Frame::End(End::Gone)) })
        })
        .await
    }

    /// Queues a message. `false` where the client has to read before there is room for another.
    ///
    /// # Errors
    /// The connection is gone.
    pub(super) async fn queue(&mut self, message: Message) -> Result<bool, End> {
        self.stream.start_send_unpin(message).map_err(|_broken| End::Gone)?;
        self.unflushed = true;
        poll_fn(|cx| match self.stream.poll_ready_unpin(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(true)),
            Poll::Ready(Err(_broken)) => Poll::Ready(Err(End::Gone)),
            Poll::Pending => Poll::Ready(Ok(false)),
        })
        .await
    }

    /// Whether something that was queued is not sent yet.
    pub(super) fn is_sending(&self) -> bool {
        self.unflushed
    }

    /// Since when the client has been reading nothing of what waits for it.
    pub(super) fn stalled_since(&self) -> Option<Instant> {
        self.connection.stalled_since()
    }

    /// Tells the client why this ends, and ends it; a client that does not listen is not waited for
    /// longer than 5 s.
    pub(super) async fn close(mut self, end: &End) {
        if end.is_deaf() {
            return;
        }
        let said = async {
            for message in end.last_words() {
                self.stream.feed(message).await?;
            }
            self.stream.flush().await?;
            // A socket that is closed with octets unread is reset, and the client may never see
            // why it was closed.
            self.connection.linger();
            self.stream.get_mut().shutdown().await.map_err(Error::Io)
        };
        // How it went is the client's affair.
        let _ = timeout(LINGER, said).await;
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Frame> {
        Poll::Ready(match ready!(self.stream.poll_next_unpin(cx)) {
            Some(Ok(Message::Text(text))) => Frame::Text(text),
            Some(Ok(Message::Ping(_))) => Frame::Ping,
            Some(Ok(Message::Pong(_))) => Frame::Pong,
            Some(Ok(Message::Close(_))) => Frame::End(End::Closed),
            Some(Ok(Message::Binary(_) | Message::Frame(_)) | Err(Error::Capacity(_))) => Frame::Unreadable,
            Some(Err(Error::Utf8(_))) => Frame::End(End::Broken(CloseCode::Invalid)),
            Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) | None => {
                Frame::End(End::Gone)
            }
            Some(Err(Error::Protocol(_))) => Frame::End(End::Broken(CloseCode::Protocol)),
            Some(Err(_io)) => Frame::End(End::Gone),
        })
    }
}
