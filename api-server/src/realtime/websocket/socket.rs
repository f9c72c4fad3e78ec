//! A WebSocket with small buffers, for clients that may be slow.

use std::future::poll_fn;
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

use super::close::CloseReason;
use crate::http::connection::Connection;
use crate::http::deadline::LINGER_TIMEOUT;

/// Bytes of a message from a client, which sends only one.
const MESSAGE_MAX: usize = 4 << 10;
/// Bytes that are read at a time. A socket keeps this buffer while it is open.
const READ_BUFFER: usize = 1 << 10;
/// Bytes that are buffered before they are written.
const WRITE_BUFFER: usize = 1 << 10;
/// Bytes that may wait for a client; more than the longest message.
const WRITE_BUFFER_MAX: usize = 32 << 10;

/// What a client sent.
#[derive(Debug)]
pub(super) enum ClientFrame {
    /// A text message.
    Text(Utf8Bytes),
    /// A message that is binary or too long.
    Unsupported,
    /// A ping, whose answer is queued.
    Ping,
    /// The answer to a ping.
    Pong,
    /// The socket is closed, by the client or by an error.
    Closed(CloseReason),
}

/// What a socket waits for.
#[derive(Debug)]
pub(super) enum SocketEvent<T> {
    /// What else is waited for has happened.
    Notified(T),
    /// The client sent something.
    Frame(ClientFrame),
    /// Everything that was queued is sent.
    Flushed,
}

/// The server's side of a WebSocket.
pub(super) struct Socket {
    /// Boxed: a future that a value is moved through keeps space for it.
    stream: Box<WebSocketStream<TokioIo<Upgraded>>>,
    connection: Connection,
    unflushed: bool,
}

impl Socket {
    /// Over a connection that was upgraded.
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

    /// Waits for the next event or for `notified`, and sends what is queued meanwhile.
    pub(super) async fn next<T>(&mut self, notified: impl Future<Output = T>) -> SocketEvent<T> {
        let mut notified = pin!(notified);
        poll_fn(|cx| {
            if let Poll::Ready(notified) = notified.as_mut().poll(cx) {
                return Poll::Ready(SocketEvent::Notified(notified));
            }
            if let Poll::Ready(frame) = self.poll_frame(cx) {
                return Poll::Ready(SocketEvent::Frame(frame));
            }
            if !self.unflushed {
                return Poll::Pending;
            }
            let flushed = ready!(self.stream.poll_flush_unpin(cx));
            self.unflushed = false;
            Poll::Ready(if flushed.is_ok() {
                SocketEvent::Flushed
            } else {
                SocketEvent::Frame(ClientFrame::Closed(CloseReason::ConnectionLost))
            })
        })
        .await
    }

    /// Queues a message. `false` where the write buffer is full until the client has read.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn queue(&mut self, message: Message) -> Result<bool, CloseReason> {
        self.stream.start_send_unpin(message).map_err(|_error| CloseReason::ConnectionLost)?;
        self.unflushed = true;
        poll_fn(|cx| match self.stream.poll_ready_unpin(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(true)),
            Poll::Ready(Err(_error)) => Poll::Ready(Err(CloseReason::ConnectionLost)),
            Poll::Pending => Poll::Ready(Ok(false)),
        })
        .await
    }

    /// Whether something that was queued is not yet sent.
    pub(super) fn is_sending(&self) -> bool {
        self.unflushed
    }

    /// Since when the client has been reading nothing of what waits to be written.
    pub(super) fn stalled_since(&self) -> Option<Instant> {
        self.connection.stalled_since()
    }

    /// Sends the closing frames and closes the connection, waiting at most 5 s for the client.
    pub(super) async fn close(mut self, reason: &CloseReason) {
        if reason.is_unreachable() {
            return;
        }
        let closing = async {
            for message in reason.closing_frames() {
                self.stream.feed(message).await?;
            }
            self.stream.flush().await?;
            // A socket that is closed with unread input is reset, and the client may never receive the
            // reason.
            self.connection.linger();
            self.stream.get_mut().shutdown().await.map_err(Error::Io)
        };
        // A failure to close is the client's: there is nothing to do about it.
        let _ = timeout(LINGER_TIMEOUT, closing).await;
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<ClientFrame> {
        Poll::Ready(match ready!(self.stream.poll_next_unpin(cx)) {
            Some(Ok(Message::Text(text))) => ClientFrame::Text(text),
            Some(Ok(Message::Ping(_))) => ClientFrame::Ping,
            Some(Ok(Message::Pong(_))) => ClientFrame::Pong,
            Some(Ok(Message::Close(_))) => ClientFrame::Closed(CloseReason::ClosedByClient),
            Some(Ok(Message::Binary(_) | Message::Frame(_)) | Err(Error::Capacity(_))) => {
                ClientFrame::Unsupported
            }
            Some(Err(Error::Utf8(_))) => ClientFrame::Closed(CloseReason::ProtocolError(CloseCode::Invalid)),
            Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) | None => {
                ClientFrame::Closed(CloseReason::ConnectionLost)
            }
            Some(Err(Error::Protocol(_))) => {
                ClientFrame::Closed(CloseReason::ProtocolError(CloseCode::Protocol))
            }
            Some(Err(_io)) => ClientFrame::Closed(CloseReason::ConnectionLost),
        })
    }
}
