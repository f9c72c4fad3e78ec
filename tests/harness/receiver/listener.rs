//! Accepts TLS connections, whose handshakes do not wait for each other.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Identity, Reaction};

/// Connections that may wait to be served.
const WAITING: usize = 1024;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;
/// Response of a receiver without TLS.
const PLAIN_RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A listener for [`axum::serve`].
pub struct TlsListener {
    address: SocketAddr,
    encrypted: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    task: JoinHandle<()>,
}

impl TlsListener {
    /// Listens; `on_connection` returns how the receiver reacts to each connection. Reactions to requests are not for it.
    ///
    /// # Panics
    /// The address is in use.
    pub async fn bind(
        address: SocketAddr,
        identity: &Identity,
        on_connection: impl Fn() -> Reaction + Send + 'static,
    ) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(identity.server_config()));
        let listener = listen(address);
        let address = listener.local_addr().expect("a listener has an address");
        let (served, encrypted) = mpsc::channel(WAITING);
        let task = tokio::spawn(async move {
            let mut silent = Vec::new();
            while let Ok((stream, client)) = listener.accept().await {
                match on_connection() {
                    Reaction::ResetConnection => drop(stream.set_zero_linger()),
                    Reaction::SilentConnection => silent.push(stream),
                    Reaction::PlainHttp => {
                        drop(tokio::spawn(send_after_read(stream, PLAIN_RESPONSE.to_owned())));
                    }
                    Reaction::RawBytesAndEnd(response) => {
                        let acceptor = acceptor.clone();
                        tokio::spawn(async move {
                            if let Ok(mut stream) = acceptor.accept(stream).await {
                                send_and_end(&mut stream, &response).await;
                            }
                        });
                    }
                    Reaction::RawBytes(response) => {
                        let acceptor = acceptor.clone();
                        tokio::spawn(async move {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                send_after_read(stream, response).await;
                            }
                        });
                    }
                    _ => {
                        let (acceptor, served) = (acceptor.clone(), served.clone());
                        tokio::spawn(async move {
                            let _ = stream.set_nodelay(true);
                            if let Ok(stream) = acceptor.accept(stream).await {
                                let _ = served.send((stream, client)).await;
                            }
                        });
                    }
                }
            }
        });
        Self { address, encrypted, task }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Sends a response after a request, whose body has an end, and closes the connection under TLS.
async fn send_and_end(stream: &mut TlsStream<TcpStream>, response: &str) {
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        match stream.read_buf(&mut request).await {
            Ok(1..) => {}
            _ => return,
        }
    }
    if stream.write_all(response.as_bytes()).await.is_ok() && stream.flush().await.is_ok() {
        let _ = stream.get_mut().0.shutdown().await;
    }
}

/// Sends a response after the first bytes were read, and then reads to the end.
async fn send_after_read(mut stream: impl AsyncRead + AsyncWrite + Unpin, response: String) {
    if let Ok(1..) = stream.read(&mut [0; 1024]).await
        && stream.write_all(response.as_bytes()).await.is_ok()
    {
        let _ = stream.flush().await;
        let _ = copy(&mut stream, &mut sink()).await;
    }
}

fn listen(address: SocketAddr) -> TcpListener {
    let socket = match address {
        SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4(),
        SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6(),
    };
    let socket = socket.expect("a socket can be created");
    socket.set_reuseaddr(true).expect("an option can be set");
    socket.bind(address).expect("loopback has the address");
    socket.listen(BACKLOG).expect("the address is free")
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.encrypted.recv().await {
            Some(accepted) => accepted,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Ok(self.address)
    }
}

impl Drop for TlsListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for TlsListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsListener").field("address", &self.address).finish_non_exhaustive()
    }
}
