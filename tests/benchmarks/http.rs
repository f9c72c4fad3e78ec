//! An HTTP/1.1 client of a few lines over one kept connection, so that latencies are the
//! server's and not the client's.

use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One connection.
#[derive(Debug)]
pub struct HttpClient {
    stream: TcpStream,
    authority: SocketAddr,
    input: Vec<u8>,
}

/// An answer; its body is whole.
#[derive(Debug)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Octets of the body.
    pub body: Vec<u8>,
}

impl HttpClient {
    /// Connects.
    ///
    /// # Errors
    /// Nothing listens there.
    pub async fn connect(authority: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(authority).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, authority, input: Vec::with_capacity(16 << 10) })
    }

    /// Sends a GET with a `/v1` token and reads the answer. `+` in the target must be escaped.
    ///
    /// # Errors
    /// The connection breaks, or the answer is none that this client reads.
    pub async fn get(&mut self, target: &str, token: &str) -> anyhow::Result<Response> {
        self.get_with(target, &format!("x-api-token: {token}")).await
    }

    /// Sends a GET with a credential (a header field, `name: value`) and reads the answer.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_with(&mut self, target: &str, credential: &str) -> anyhow::Result<Response> {
        self.send("GET", target, credential, "").await
    }

    /// Sends a request with one header field of its own (`name: value`) and a JSON body, and
    /// reads the answer.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn send(
        &mut self,
        method: &str,
        target: &str,
        own: &str,
        body: &str,
    ) -> anyhow::Result<Response> {
        self.send_as("application/json", method, target, own, body).await
    }

    /// As [`Self::send`], with a body of another type.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn send_as(
        &mut self,
        content_type: &str,
        method: &str,
        target: &str,
        own: &str,
        body: &str,
    ) -> anyhow::Result<Response> {
        let (authority, length) = (self.authority, body.len());
        let describe = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Type: {content_type}\r\nContent-Length: {length}\r\n")
        };
        let request =
            format!("{method} {target} HTTP/1.1\r\nHost: {authority}\r\n{own}\r\n{describe}\r\n{body}");
        self.stream.write_all(request.as_bytes()).await?;
        let head_end = loop {
            if let Some(end) = self.input.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            self.fill().await?;
        };
        let head = str::from_utf8(&self.input[..head_end])?;
        let status = head.get(9..12).and_then(|code| code.parse().ok()).context("no status code")?;
        let length = match (field(head, "content-length"), field(head, "transfer-encoding")) {
            (Some(length), None) => length.parse()?,
            (None, None) if status == 204 => 0,
            _ => bail!("an answer without Content-Length"),
        };
        while self.input.len() < head_end + length {
            self.fill().await?;
        }
        let body = self.input[head_end..head_end + length].to_vec();
        self.input.drain(..head_end + length);
        Ok(Response { status, body })
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        ensure!(self.stream.read_buf(&mut self.input).await? > 0, "the connection was closed");
        Ok(())
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}
