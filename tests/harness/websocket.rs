//! A WebSocket client (RFC 6455), for what a browser does and for what none would.

mod line;

use std::io;
use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use self::line::Line;
use crate::http::Answer;
use crate::raw::RawConnection;
use crate::wait::within_deadline;

/// Small, so that thousands of clients fit into a test.
const BUFFER: usize = 4096;

/// What the other side sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Vec<u8>),
    /// A ping, which is answered.
    Ping,
    /// A pong.
    Pong,
    /// A close, with its code and reason (1005 where it has none).
    Close(u16, String),
    /// The connection is gone.
    End,
}

/// A connection to be made.
#[derive(Debug)]
pub struct Dial {
    server: SocketAddr,
    headers: Vec<(String, String)>,
    receive_buffer: Option<u32>,
}

impl Dial {
    /// With a header field more.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// As a browser would that shows a page of this origin.
    #[must_use]
    pub fn origin(self, origin: &str) -> Self {
        self.header("origin", origin)
    }

    /// With a receive buffer of about so many octets.
    #[must_use]
    pub fn receive_buffer(mut self, octets: u32) -> Self {
        self.receive_buffer = Some(octets);
        self
    }

    /// Connects; the answer where the upgrade is refused.
    ///
    /// # Errors
    /// There is no listener, or it closed.
    ///
    /// # Panics
    /// The answer is not as the OpenAPI document says, or no right upgrade.
    pub async fn try_connect(self) -> io::Result<Result<WebSocket, Answer>> {
        let key = generate_key();
        let upgrade = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", &key),
        ];
        let upgrade = upgrade.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers: Vec<_> = upgrade.into_iter().chain(self.headers).collect();
        let mut connection = RawConnection::dial(self.server, self.receive_buffer).await?;
        let answer = connection.get("/api/ws", &headers).await?;
        if answer.status != 101 {
            return Ok(Err(answer));
        }
        assert!(answer.header("upgrade").eq_ignore_ascii_case("websocket"), "{answer:?}");
        assert!(answer.header("connection").eq_ignore_ascii_case("upgrade"), "{answer:?}");
        assert_eq!(answer.header("sec-websocket-accept"), derive_accept_key(key.as_bytes()));
        let config = WebSocketConfig::default().read_buffer_size(BUFFER).write_buffer_size(0);
        let (stream, received) = connection.into_parts();
        let line = Line::new(stream);
        let stream = WebSocketStream::from_partially_read(line, received, Role::Client, Some(config)).await;
        Ok(Ok(WebSocket { stream }))
    }

    /// Connects.
    ///
    /// # Panics
    /// It is refused.
    pub async fn connect(self) -> WebSocket {
        match self.try_connect().await.expect("the server answers") {
            Ok(socket) => socket,
            Err(answer) => panic!("no upgrade: {answer:?}\n{}", answer.text()),
        }
    }

    /// The answer to an upgrade that is refused.
    ///
    /// # Panics
    /// It is not.
    pub async fn refused(self) -> Answer {
        match self.try_connect().await.expect("the server answers") {
            Ok(_) => panic!("the upgrade was not refused"),
            Err(answer) => answer,
        }
    }
}

/// An open connection. It reads, and answers pings, only while a method that waits for something
/// is called; a client that reads nothing is one that is left alone.
#[derive(Debug)]
pub struct WebSocket {
    stream: WebSocketStream<Line>,
}

impl WebSocket {
    /// A connection to `/api/ws` of a server.
    pub fn to(server: SocketAddr) -> Dial {
        Dial { server, headers: Vec::new(), receive_buffer: None }
    }

    /// A connection that is authenticated.
    ///
    /// # Panics
    /// It is refused.
    pub async fn authenticated(server: SocketAddr, jwt: &str) -> Self {
        let mut socket = Self::to(server).connect().await;
        socket.auth(jwt).await;
        assert_eq!(socket.next_json().await, json!({"type": "auth_ok"}));
        socket
    }

    /// Sends the message that authenticates.
    pub async fn auth(&mut self, jwt: &str) {
        self.send_text(&json!({"type": "auth", "token": jwt}).to_string()).await;
    }

    /// Sends a text message; that the server may have closed shows in what is read next.
    pub async fn send_text(&mut self, text: &str) {
        self.send(Message::text(text)).await;
    }

    /// Sends a binary message.
    pub async fn send_binary(&mut self, octets: impl Into<Vec<u8>>) {
        self.send(Message::binary(octets.into())).await;
    }

    /// Sends a ping.
    pub async fn ping(&mut self) {
        self.send(Message::Ping(Bytes::new())).await;
    }

    /// Sends a close.
    pub async fn close(&mut self) {
        self.send(Message::Close(None)).await;
    }

    /// Sends octets in the place of frames.
    pub async fn send_raw(&mut self, octets: &[u8]) {
        let _ = within_deadline("the server takes what it is sent", self.stream.get_mut().write_all(octets))
            .await;
    }

    /// Sends nothing from now on, pongs included, and reads on: half a connection.
    pub fn mute(&mut self) {
        self.stream.get_mut().mute();
    }

    /// The next frame, however long it takes.
    pub async fn frame(&mut self) -> Frame {
        let Some(Ok(message)) = self.stream.next().await else { return Frame::End };
        match message {
            Message::Text(text) => Frame::Text(text.to_string()),
            Message::Binary(octets) => Frame::Binary(octets.into()),
            Message::Ping(_) => {
                // The pong is queued, and would wait for the next read.
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
    /// None comes.
    pub async fn next_frame(&mut self) -> Frame {
        within_deadline("a frame", self.frame()).await
    }

    /// The next message, which is to be JSON; pings are passed over.
    ///
    /// # Panics
    /// None comes, or something else.
    pub async fn next_json(&mut self) -> Value {
        loop {
            match self.next_frame().await {
                Frame::Text(text) => return serde_json::from_str(&text).expect("a message is JSON"),
                Frame::Ping | Frame::Pong => {}
                other => panic!("in the place of a message: {other:?}"),
            }
        }
    }

    /// The code with which the server closes next; pings are passed over.
    ///
    /// # Panics
    /// It sends something else first, or is gone without a close.
    pub async fn closed(&mut self) -> u16 {
        loop {
            match self.next_frame().await {
                Frame::Close(code, _) => return code,
                Frame::Ping | Frame::Pong => {}
                other => panic!("in the place of a close: {other:?}"),
            }
        }
    }

    /// Asserts that the next message is `{"error": "<code>"}` and that the server then closes with
    /// 1008.
    ///
    /// # Panics
    /// It is something else.
    pub async fn is_refused(&mut self, code: &str) {
        assert_eq!(self.next_json().await, json!({ "error": code }));
        assert_eq!(self.closed().await, 1008);
        assert_eq!(self.next_frame().await, Frame::End);
    }

    async fn send(&mut self, message: Message) {
        let _ = within_deadline("the server takes what it is sent", self.stream.send(message)).await;
    }
}
