//! A WebSocket client (RFC 6455) that can also break the protocol.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::http::Response;
use crate::raw::RawConnection;
use crate::wait::within_deadline;

/// Small, since a test may have thousands of clients.
const BUFFER: usize = 4096;

/// A frame or message of the server.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Vec<u8>),
    /// A ping; the client answers it.
    Ping,
    /// A pong.
    Pong,
    /// A close with its code (1005 if it has none) and reason.
    Close(u16, String),
    /// The connection ended.
    End,
}

/// Options of a connection.
#[derive(Debug)]
pub struct WebSocketBuilder {
    server: SocketAddr,
    headers: Vec<(String, String)>,
    receive_buffer: Option<u32>,
}

impl WebSocketBuilder {
    /// Adds a header field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the origin, as a browser does.
    #[must_use]
    pub fn origin(self, origin: &str) -> Self {
        self.header("origin", origin)
    }

    /// Sets the size of the receive buffer, in bytes (approximate).
    #[must_use]
    pub fn receive_buffer(mut self, bytes: u32) -> Self {
        self.receive_buffer = Some(bytes);
        self
    }

    /// Connects; returns the response if the upgrade is rejected.
    ///
    /// # Errors
    /// The connection failed.
    ///
    /// # Panics
    /// The response is not as the OpenAPI document says, or not a valid upgrade.
    pub async fn try_connect(self) -> io::Result<Result<WebSocket, Response>> {
        let key = generate_key();
        let upgrade = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", &key),
        ];
        let upgrade = upgrade.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers: Vec<_> = upgrade.into_iter().chain(self.headers).collect();
        let mut connection = RawConnection::connect(self.server, self.receive_buffer).await?;
        let answer = connection.get("/api/ws", &headers).await?;
        if answer.status != 101 {
            return Ok(Err(answer));
        }
        assert!(answer.header("upgrade").eq_ignore_ascii_case("websocket"), "{answer:?}");
        assert!(answer.header("connection").eq_ignore_ascii_case("upgrade"), "{answer:?}");
        assert_eq!(answer.header("sec-websocket-accept"), derive_accept_key(key.as_bytes()));
        let config = WebSocketConfig::default().read_buffer_size(BUFFER).write_buffer_size(0);
        let (stream, received) = connection.into_parts();
        let stream = MutingStream::new(stream);
        let stream = WebSocketStream::from_partially_read(stream, received, Role::Client, Some(config)).await;
        Ok(Ok(WebSocket { stream }))
    }

    /// Connects.
    ///
    /// # Panics
    /// The upgrade is rejected.
    pub async fn connect(self) -> WebSocket {
        match self.try_connect().await.expect("the server answers") {
            Ok(socket) => socket,
            Err(answer) => panic!("no upgrade: {answer:?}\n{}", answer.text()),
        }
    }

    /// The response to an upgrade that is rejected.
    ///
    /// # Panics
    /// The upgrade succeeds.
    pub async fn refused(self) -> Response {
        match self.try_connect().await.expect("the server answers") {
            Ok(_) => panic!("the upgrade was not rejected"),
            Err(answer) => answer,
        }
    }
}

/// An open connection. It reads, and answers pings, only while a method waits for a frame: a client that
/// reads nothing is one whose methods are not called.
#[derive(Debug)]
pub struct WebSocket {
    stream: WebSocketStream<MutingStream>,
}

impl WebSocket {
    /// Options for a connection to `/api/ws` of a server.
    pub fn to(server: SocketAddr) -> WebSocketBuilder {
        WebSocketBuilder { server, headers: Vec::new(), receive_buffer: None }
    }

    /// Connects and authenticates.
    ///
    /// # Panics
    /// The upgrade or the token is rejected.
    pub async fn authenticated(server: SocketAddr, jwt: &str) -> Self {
        let mut socket = Self::to(server).connect().await;
        socket.auth(jwt).await;
        assert_eq!(socket.next_json().await, json!({"type": "auth_ok"}));
        socket
    }

    /// Sends the `auth` message.
    pub async fn auth(&mut self, jwt: &str) {
        self.send_text(&json!({"type": "auth", "token": jwt}).to_string()).await;
    }

    /// Sends a text message. If the server has closed, the next read shows it.
    pub async fn send_text(&mut self, text: &str) {
        self.send(Message::text(text)).await;
    }

    /// Sends a binary message.
    pub async fn send_binary(&mut self, bytes: impl Into<Vec<u8>>) {
        self.send(Message::binary(bytes.into())).await;
    }

    /// Sends a ping.
    pub async fn ping(&mut self) {
        self.send(Message::Ping(Bytes::new())).await;
    }

    /// Sends a close.
    pub async fn close(&mut self) {
        self.send(Message::Close(None)).await;
    }

    /// Sends raw bytes.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        let _ = within_deadline("the server reads", self.stream.get_mut().write_all(bytes)).await;
    }

    /// Stops sending, pongs included, and keeps reading: a half-open connection.
    pub fn mute(&mut self) {
        self.stream.get_mut().mute();
    }

    /// The next frame, without a deadline.
    pub async fn frame(&mut self) -> Frame {
        let Some(Ok(message)) = self.stream.next().await else { return Frame::End };
        match message {
            Message::Text(text) => Frame::Text(text.to_string()),
            Message::Binary(bytes) => Frame::Binary(bytes.into()),
            Message::Ping(_) => {
                // The pong is queued and would wait for the next read.
                let _ = self.stream.flush().await;
                Frame::Ping
            }
            Message::Pong(_) => Frame::Pong,
            Message::Close(None) => Frame::Close(1005, String::new()),
            Message::Close(Some(close)) => Frame::Close(close.code.into(), close.reason.to_string()),
            Message::Frame(_) => unreachable!("messages are read, not frames"),
        }
    }

    /// The next frame.
    ///
    /// # Panics
    /// None comes in time.
    pub async fn next_frame(&mut self) -> Frame {
        within_deadline("a frame", self.frame()).await
    }

    /// The next JSON message; skips pings.
    ///
    /// # Panics
    /// Anything else comes, or nothing in time.
    pub async fn next_json(&mut self) -> Value {
        loop {
            match self.next_frame().await {
                Frame::Text(text) => return serde_json::from_str(&text).expect("a message is JSON"),
                Frame::Ping | Frame::Pong => {}
                other => panic!("expected a message, got {other:?}"),
            }
        }
    }

    /// The code of the close frame that comes next; skips pings.
    ///
    /// # Panics
    /// Anything else comes, or nothing in time.
    pub async fn closed(&mut self) -> u16 {
        loop {
            match self.next_frame().await {
                Frame::Close(code, _) => return code,
                Frame::Ping | Frame::Pong => {}
                other => panic!("expected a close, got {other:?}"),
            }
        }
    }

    /// Asserts that the next message is `{"error": "<code>"}` and that the server then closes with
    /// 1008.
    ///
    /// # Panics
    /// It is something else.
    pub async fn assert_refused(&mut self, code: &str) {
        assert_eq!(self.next_json().await, json!({ "error": code }));
        assert_eq!(self.closed().await, 1008);
        assert_eq!(self.next_frame().await, Frame::End);
    }

    async fn send(&mut self, message: Message) {
        let _ = within_deadline("the server reads", self.stream.send(message)).await;
    }
}

/// A stream that discards what is written once it is muted.
#[derive(Debug)]
struct MutingStream {
    stream: TcpStream,
    is_muted: bool,
}

impl MutingStream {
    /// Not muted.
    fn new(stream: TcpStream) -> Self {
        Self { stream, is_muted: false }
    }

    /// Discards everything that is written from now on.
    fn mute(&mut self) {
        self.is_muted = true;
    }
}

impl AsyncRead for MutingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for MutingStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_muted {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
