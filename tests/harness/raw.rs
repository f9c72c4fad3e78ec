//! A TCP connection to an HTTP server that sends exactly the given bytes and reads only on request.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::contract;
use crate::http::Response;
use crate::wait::within_deadline;

/// A connection.
#[derive(Debug)]
pub struct RawConnection {
    server: SocketAddr,
    stream: TcpStream,
    received: Vec<u8>,
}

impl RawConnection {
    /// Connects. `receive_buffer` is its size in bytes (approximate; `None`: the system's default): what a
    /// server can send to a client that reads nothing is this and its own buffers.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn connect(server: SocketAddr, receive_buffer: Option<u32>) -> io::Result<Self> {
        let socket = if server.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let stream = socket.connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self { server, stream, received: Vec::new() })
    }

    /// Sends bytes unchanged.
    ///
    /// # Errors
    /// The server closed.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        within_deadline("the server reads", self.stream.write_all(bytes.as_ref())).await
    }

    /// Sends a `GET` and reads the response. Of an event stream or an upgrade it reads the head only.
    ///
    /// # Errors
    /// The server closed the connection.
    ///
    /// # Panics
    /// The response is not HTTP, or not as the OpenAPI document says.
    pub async fn get(&mut self, path: &str, headers: &[(String, String)]) -> io::Result<Response> {
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n", self.server);
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
            sent.append(header_name(name), HeaderValue::from_str(value).expect("a value of a header"));
        }
        self.send(format!("{request}\r\n")).await?;
        let mut response = within_deadline("the head of a response", self.head()).await?;
        if response.status != 101 && response.media_type() != "text/event-stream" {
            let length = response.header("content-length").parse().unwrap_or(0);
            response.body = within_deadline("the body of a response", self.take(length)).await?;
        }
        let url: Url = format!("http://{}{path}", self.server).parse().expect("a path of a URL");
        contract::check(&Method::GET, &url, &sent, &response);
        Ok(response)
    }

    /// All unread bytes until the server closes.
    ///
    /// # Panics
    /// It does not close in time.
    pub async fn read_to_end(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.received);
        // A reset is an end, too.
        let _ = within_deadline("the server closes", self.stream.read_to_end(&mut rest)).await;
        rest
    }

    /// The stream, from which nothing was read yet.
    ///
    /// # Panics
    /// Bytes were received and not used.
    pub fn into_stream(self) -> TcpStream {
        assert!(self.received.is_empty(), "bytes were received");
        self.stream
    }

    /// The stream, and bytes received but not used yet.
    pub(crate) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.received)
    }

    async fn head(&mut self) -> io::Result<Response> {
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
        Ok(Response { status: status.expect("a status line"), headers, body: Vec::new() })
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
