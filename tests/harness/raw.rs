//! A TCP connection to an HTTP server that sends exactly the octets it is given, and reads only
//! when it is told to.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::contract;
use crate::http::Answer;
use crate::wait::within_deadline;

/// A connection.
#[derive(Debug)]
pub struct RawConnection {
    server: SocketAddr,
    stream: TcpStream,
    received: Vec<u8>,
}

impl RawConnection {
    /// Connects; with a receive buffer of about so many octets, or as the system has it. What a
    /// server can send to somebody who reads nothing is this and its own buffers.
    ///
    /// # Errors
    /// There is no listener.
    pub async fn dial(server: SocketAddr, receive_buffer: Option<u32>) -> io::Result<Self> {
        let socket = if server.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(octets) = receive_buffer {
            socket.set_recv_buffer_size(octets)?;
        }
        let stream = socket.connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self { server, stream, received: Vec::new() })
    }

    /// Sends octets as they are.
    ///
    /// # Errors
    /// The server closed.
    pub async fn send(&mut self, octets: impl AsRef<[u8]>) -> io::Result<()> {
        within_deadline("the server takes what it is sent", self.stream.write_all(octets.as_ref())).await
    }

    /// Sends a `GET` and reads the answer: of a stream of events and of an upgrade the head, and
    /// what follows stays unread.
    ///
    /// # Errors
    /// The server closed instead.
    ///
    /// # Panics
    /// The answer is not HTTP, or not as the OpenAPI document says.
    pub async fn get(&mut self, path: &str, headers: &[(String, String)]) -> io::Result<Answer> {
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n", self.server);
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
            sent.append(header_name(name), HeaderValue::from_str(value).expect("a value of a header"));
        }
        self.send(format!("{request}\r\n")).await?;
        let mut answer = within_deadline("the head of an answer", self.head()).await?;
        if answer.status != 101 && answer.media_type() != "text/event-stream" {
            let length = answer.header("content-length").parse().unwrap_or(0);
            answer.body = within_deadline("the body of an answer", self.take(length)).await?;
        }
        let url: Url = format!("http://{}{path}", self.server).parse().expect("a path of a URL");
        contract::check(&Method::GET, &url, &sent, &answer);
        Ok(answer)
    }

    /// Everything that the server sent and was not read, and sends until it closes.
    ///
    /// # Panics
    /// It does not close.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.received);
        // A reset is an end too.
        let _ = within_deadline("the server closes", self.stream.read_to_end(&mut rest)).await;
        rest
    }

    /// The stream, and what was received of it and not used.
    pub(crate) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.received)
    }

    async fn head(&mut self) -> io::Result<Answer> {
        let end = loop {
            if let Some(end) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            self.read().await?;
        };
        let head: Vec<u8> = self.received.drain(..end + 4).collect();
        let head = String::from_utf8(head).expect("a head of ours is ASCII");
        let mut lines = head.trim_end().split("\r\n");
        let status =
            lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok());
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(':').expect("a header field has a colon");
            let value = HeaderValue::from_str(value.trim()).expect("a value of a header");
            headers.append(header_name(name), value);
        }
        Ok(Answer { status: status.expect("a status line"), headers, body: Vec::new() })
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.received.len() < length {
            self.read().await?;
        }
        Ok(self.received.drain(..length).collect())
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn header_name(name: &str) -> HeaderName {
    name.parse().expect("a name of a header")
}
