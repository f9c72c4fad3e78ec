//! An SMTP client that sends exactly the given bytes.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::wait::DEADLINE;

trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The three digits.
    pub code: u16,
    /// The text of each line.
    pub lines: Vec<String>,
}

impl Reply {
    /// The code and the enhanced status code, if there is one: `550 5.1.1`.
    pub fn status(&self) -> String {
        let word = self.lines.last().and_then(|line| line.split(' ').next()).unwrap_or_default();
        let enhanced = word.split('.').count() == 3 && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if enhanced { format!("{} {word}", self.code) } else { self.code.to_string() }
    }

    /// Whether the code is 2xx or 3xx.
    pub fn is_positive(&self) -> bool {
        (200..400).contains(&self.code)
    }
}

/// One session. It sends only what the test asks for.
pub struct SmtpClient {
    stream: Box<dyn ByteStream>,
    received: Vec<u8>,
}

impl std::fmt::Debug for SmtpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SmtpClient")
    }
}

impl SmtpClient {
    /// Connects and leaves the greeting unread.
    ///
    /// # Errors
    /// There is no listener.
    pub async fn connect_without_greeting(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self::from_stream(stream))
    }

    /// A session over an existing stream.
    pub fn from_stream(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self { stream: Box::new(stream), received: Vec::new() }
    }

    /// Connects and reads the greeting.
    ///
    /// # Panics
    /// No listener, or no `220`.
    pub async fn connect(server: SocketAddr) -> Self {
        let mut client =
            Self::connect_without_greeting(server).await.expect("the SMTP listener takes connections");
        let greeting = client.reply().await;
        assert_eq!(greeting.code, 220, "{greeting:?}");
        client
    }

    /// Connects and sends `EHLO`.
    ///
    /// # Panics
    /// The connection or the command is refused.
    pub async fn connect_with_ehlo(server: SocketAddr) -> Self {
        let mut client = Self::connect(server).await;
        let reply = client.command("EHLO client.example").await;
        assert_eq!(reply.code, 250, "{reply:?}");
        client
    }

    /// Connects from another address, with a header of the PROXY protocol: loopback is in `smtp.proxy_networks`. The
    /// greeting is unread.
    ///
    /// # Panics
    /// There is no listener.
    pub async fn connect_from(server: SocketAddr, address: &str) -> Self {
        let mut client =
            Self::connect_without_greeting(server).await.expect("the SMTP listener takes connections");
        let (family, us) =
            if address.contains(':') { ("TCP6", "2001:db8::25") } else { ("TCP4", "10.0.0.1") };
        client.send(format!("PROXY {family} {address} {us} 40000 25\r\n")).await;
        client
    }

    /// As [`Self::connect_from`], and sends `EHLO`.
    ///
    /// # Panics
    /// The connection or the command is refused.
    pub async fn connect_with_ehlo_from(server: SocketAddr, address: &str) -> Self {
        let mut client = Self::connect_from(server, address).await;
        let greeting = client.reply().await;
        assert_eq!(greeting.code, 220, "{greeting:?}");
        client.expect_positive("EHLO client.example").await;
        client
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The server closed.
    pub async fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        timeout(DEADLINE, async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        })
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Sends bytes as they are. If the server has closed, the next reply shows it.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.try_send(bytes.as_ref()).await;
    }

    /// Reads one reply; `None` if the server closed instead.
    ///
    /// # Panics
    /// The reply does not follow RFC 5321 4.2, or none came in time.
    pub async fn try_reply(&mut self) -> Option<Reply> {
        let mut lines = Vec::new();
        loop {
            let line = self.line().await?;
            let (code, rest) = line.split_at_checked(3).expect("a reply line starts with three digits");
            let code: u16 = code.parse().expect("a reply line starts with three digits");
            let (last, text) = match rest.split_at_checked(1) {
                Some((" ", text)) => (true, text),
                Some(("-", text)) => (false, text),
                _ => (true, rest),
            };
            lines.push(text.to_owned());
            if last {
                return Some(Reply { code, lines });
            }
        }
    }

    /// Reads one reply.
    ///
    /// # Panics
    /// The server closed.
    pub async fn reply(&mut self) -> Reply {
        self.try_reply().await.expect("the server replies rather than closes")
    }

    /// Sends a line and reads its reply.
    pub async fn command(&mut self, line: &str) -> Reply {
        self.send(format!("{line}\r\n")).await;
        self.reply().await
    }

    /// Sends a line and expects a positive reply.
    ///
    /// # Panics
    /// The reply is not positive.
    pub async fn expect_positive(&mut self, line: &str) -> Reply {
        let reply = self.command(line).await;
        assert!(reply.is_positive(), "{line}: {reply:?}");
        reply
    }

    /// Runs a mail transaction; returns the first negative reply, or the reply to the end of data.
    pub async fn transact(&mut self, sender: &str, recipients: &[&str], message: &[u8]) -> Reply {
        match self.try_transact(sender, recipients, message).await {
            Some(reply) => reply,
            None => panic!("the server closed in a mail transaction"),
        }
    }

    /// As [`Self::transact`]; `None` if the server closed before it replied.
    pub async fn try_transact(&mut self, sender: &str, recipients: &[&str], message: &[u8]) -> Option<Reply> {
        let mut commands = vec![format!("MAIL FROM:<{sender}>\r\n")];
        commands.extend(recipients.iter().map(|recipient| format!("RCPT TO:<{recipient}>\r\n")));
        commands.push("DATA\r\n".to_owned());
        for command in commands {
            self.try_send(command.as_bytes()).await.ok()?;
            let reply = self.try_reply().await?;
            if !reply.is_positive() {
                return Some(reply);
            }
        }
        self.try_send(&dot_stuffed(message)).await.ok()?;
        self.try_reply().await
    }

    /// Reads until the server closes.
    ///
    /// # Panics
    /// It does not close.
    pub async fn read_to_end(&mut self) -> String {
        let mut rest = std::mem::take(&mut self.received);
        let read = timeout(DEADLINE, self.stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "the server does not close the connection");
        String::from_utf8_lossy(&rest).into_owned()
    }

    /// The stream, for TLS.
    ///
    /// # Panics
    /// There is received data that was not read.
    pub fn into_stream(self) -> impl AsyncRead + AsyncWrite + Send + Unpin + 'static {
        assert!(self.received.is_empty(), "the server sent more than its reply");
        self.stream
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.received.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.received.drain(..end + 2).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let mut block = [0; 4096];
            let read = timeout(DEADLINE, self.stream.read(&mut block)).await;
            match read.expect("the server replies in time") {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.received.extend_from_slice(&block[..n]),
            }
        }
    }
}

/// Whether the server neither closes nor sends anything for `span`.
pub async fn stays_silent(client: &mut SmtpClient, span: Duration) -> bool {
    timeout(span, client.line()).await.is_err()
}

/// A message as sent after `DATA`: dot-stuffed, with the end of data.
pub fn dot_stuffed(message: &[u8]) -> Vec<u8> {
    let mut wire = Vec::with_capacity(message.len() + 8);
    let mut line_start = true;
    for &octet in message {
        if line_start && octet == b'.' {
            wire.push(b'.');
        }
        line_start = octet == b'\n';
        wire.push(octet);
    }
    if !wire.ends_with(b"\r\n") {
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b".\r\n");
    wire
}

/// A small message.
pub fn message(from: &str, subject: &str, body: &str) -> Vec<u8> {
    format!("From: {from}\r\nTo: someone@client.example\r\nSubject: {subject}\r\n\r\n{body}\r\n").into_bytes()
}

/// Sends one mail over a new connection; returns the reply to the end of data, or the first negative
/// reply.
pub async fn send_mail(server: SocketAddr, sender: &str, recipient: &str, message: &[u8]) -> Reply {
    let mut client = SmtpClient::connect_with_ehlo(server).await;
    let reply = client.transact(sender, &[recipient], message).await;
    client.send(b"QUIT\r\n").await;
    reply
}
