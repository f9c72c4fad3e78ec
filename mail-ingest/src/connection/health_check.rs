//! Serves a load balancer that checks whether the server is alive: it gets the greeting, and may only QUIT.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::client_stream::ClientStream;
use super::server::Server;
use crate::smtp::reply;

/// Octets of its command that are read.
const LINE_MAX: u64 = 512;

impl Server {
    /// Serves one health check until the connection ends.
    pub(crate) async fn serve_health_check(&self, mut stream: TcpStream) {
        let command = tokio::time::timeout(self.timeouts.command(), self.greet(&mut stream)).await;
        let reply = match command {
            Ok(Ok(command)) if command.trim_ascii_end().eq_ignore_ascii_case(b"QUIT") => reply::BYE,
            Ok(Ok(command)) if command.is_empty() => return,
            Ok(Ok(_)) => reply::ONLY_QUIT,
            Ok(Err(_)) => return,
            Err(_) => reply::TIMEOUT,
        };
        let mut client = ClientStream::new(stream, &self.timeouts, CancellationToken::new());
        reply.write(&mut client.out);
        if client.flush().await.is_ok() {
            client.linger().await;
        }
    }

    /// Sends the greeting and reads a line; it is empty if the other side closes.
    async fn greet(&self, stream: &mut TcpStream) -> io::Result<Vec<u8>> {
        stream.write_all(self.settings.greeting().as_bytes()).await?;
        let mut line = Vec::new();
        BufReader::new(stream.take(LINE_MAX)).read_until(b'\n', &mut line).await?;
        Ok(line)
    }
}
