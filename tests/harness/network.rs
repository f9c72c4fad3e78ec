//! A TCP proxy between clients and a server that can drop, stall or cut connections.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::contract::ValidatedServer;

/// What the proxy does with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    /// Passes data on.
    Up,
    /// Reads and discards data, as if the other side had vanished.
    Dropping,
    /// Reads nothing, as if the other side had stopped reading.
    Stalled,
    /// Closes all connections, including new ones.
    Down,
}

/// See the module.
#[derive(Debug)]
pub struct FaultyNetwork {
    address: SocketAddr,
    state: Arc<watch::Sender<LinkState>>,
    _validated: ValidatedServer,
}

impl FaultyNetwork {
    /// A proxy on a free port of loopback that leads to `server`.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let state = Arc::new(watch::Sender::new(LinkState::Up));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *shared.borrow() != LinkState::Down {
                    tokio::spawn(proxy(client, server, shared.subscribe()));
                }
            }
        });
        Self { address, state, _validated: ValidatedServer::new(address) }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Discards what both sides send from now on, and keeps the connections.
    pub fn blackhole(&self) {
        self.state.send_replace(LinkState::Dropping);
    }

    /// Reads nothing from either side from now on, and keeps the connections.
    pub fn stall(&self) {
        self.state.send_replace(LinkState::Stalled);
    }

    /// Closes all connections, including new ones.
    pub fn cut(&self) {
        self.state.send_replace(LinkState::Down);
    }

    /// Passes data on again.
    pub fn restore(&self) {
        self.state.send_replace(LinkState::Up);
    }
}

async fn proxy(client: TcpStream, server: SocketAddr, mut state: watch::Receiver<LinkState>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = copy(from_client, to_server, state.clone()) => {}
        () = copy(from_server, to_client, state.clone()) => {}
        _ = state.wait_for(|state| *state == LinkState::Down) => {}
    }
}

/// Copies one direction until a side closes, which closes both directions: no test needs a half-closed
/// connection.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<LinkState>,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        if state.wait_for(|state| *state != LinkState::Stalled).await.is_err() {
            return;
        }
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = state.changed() => continue,
        };
        let Ok(length @ 1..) = read else { return };
        if *state.borrow() == LinkState::Up && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
