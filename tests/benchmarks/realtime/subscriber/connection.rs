//! One connection of a subscriber, which holds little while nothing comes: thousands of them are to
//! leave the machine to the server.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};

use super::Disconnect;

/// Connections that one source address gives; loopback has many of them.
const OF_SOURCE: u32 = 4_000;

/// The head of an answer.
#[derive(Debug)]
pub struct Head {
    /// Status code.
    pub status: u16,
    text: String,
}

impl Head {
    /// A header field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.text.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// One connection of a subscriber.
#[derive(Debug)]
pub struct HttpConnection {
    stream: TcpStream,
    input: Vec<u8>,
    /// When the newest octets came.
    pub at: Instant,
}

impl HttpConnection {
    /// Connects from an address that depends on `number`, so that no source runs out of ports.
    ///
    /// # Errors
    /// Nothing listens there.
    pub async fn connect(server: SocketAddr, number: u32) -> Result<Self, Disconnect> {
        let [.., third, fourth] = (2 + number / OF_SOURCE).to_be_bytes();
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::new(127, 0, third, fourth), 0).into())?;
        let stream = socket.connect(server).await.map_err(|_| Disconnect::NotConnected)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, input: Vec::new(), at: Instant::now() })
    }

    /// Sends octets.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send(&mut self, octets: &[u8]) -> Result<(), Disconnect> {
        Ok(self.stream.write_all(octets).await?)
    }

    /// Reads the head of an answer.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn head(&mut self) -> Result<Head, Disconnect> {
        let text = self.until(b"\r\n\r\n").await?;
        let status = text.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
        Ok(Head { status, text })
    }

    /// The next piece of a body that comes in chunks; `None` after the last one.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Disconnect> {
        let size = self.until(b"\r\n").await?;
        let octets = usize::from_str_radix(size.trim_end(), 16).map_err(|_| Disconnect::Malformed)?;
        let mut chunk = self.octets(octets + 2).await?;
        chunk.truncate(octets);
        Ok((octets > 0).then_some(chunk))
    }

    /// The next octets, so many.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn octets(&mut self, count: usize) -> Result<Vec<u8>, Disconnect> {
        while self.input.len() < count {
            self.fill().await?;
        }
        Ok(self.take(count))
    }

    async fn until(&mut self, mark: &[u8]) -> Result<String, Disconnect> {
        loop {
            if let Some(start) = self.input.windows(mark.len()).position(|octets| octets == mark) {
                return String::from_utf8(self.take(start + mark.len())).map_err(|_| Disconnect::Malformed);
            }
            self.fill().await?;
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.input.split_off(count);
        std::mem::replace(&mut self.input, rest)
    }

    async fn fill(&mut self) -> Result<(), Disconnect> {
        loop {
            self.stream.readable().await?;
            let mut scratch = [0; 4096];
            match self.stream.try_read(&mut scratch) {
                Ok(0) => return Err(Disconnect::Closed),
                Ok(octets) => {
                    self.at = Instant::now();
                    self.input.extend_from_slice(&scratch[..octets]);
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
