//! A network between clients and a server that can fail them.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::contract::ValidatedServer;

/// What the network does with what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    /// It is passed on.
    Fair,
    /// It is taken, and thrown away: the other side has gone without a word.
    Lost,
    /// Nothing is taken: the other side reads no more.
    Stuck,
    /// Every connection is closed, and no new one stays.
    Down,
}

/// A TCP proxy before a server.
#[derive(Debug)]
pub struct FaultyNetwork {
    address: SocketAddr,
    weather: Arc<watch::Sender<Weather>>,
    _validated: ValidatedServer,
}

impl FaultyNetwork {
    /// A network on a free port of loopback that leads to `server`.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let weather = Arc::new(watch::Sender::new(Weather::Fair));
        let shared = Arc::clone(&weather);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *shared.borrow() != Weather::Down {
                    tokio::spawn(connect(client, server, shared.subscribe()));
                }
            }
        });
        Self { address, weather, _validated: ValidatedServer::new(address) }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Throws away what either side sends from now on, and keeps the connections.
    pub fn blackhole(&self) {
        self.weather.send_replace(Weather::Lost);
    }

    /// Takes nothing from either side from now on, and keeps the connections.
    pub fn stall(&self) {
        self.weather.send_replace(Weather::Stuck);
    }

    /// Closes every connection and takes no new one.
    pub fn cut(&self) {
        self.weather.send_replace(Weather::Down);
    }

    /// Passes on what it is given from now on.
    pub fn restore(&self) {
        self.weather.send_replace(Weather::Fair);
    }
}

async fn connect(client: TcpStream, server: SocketAddr, mut weather: watch::Receiver<Weather>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = pass(from_client, to_server, weather.clone()) => {}
        () = pass(from_server, to_client, weather.clone()) => {}
        _ = weather.wait_for(|weather| *weather == Weather::Down) => {}
    }
}

/// Passes one direction on until a side closes. A side that does so closes the other: nothing
/// that is tested needs half of a connection.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut weather: watch::Receiver<Weather>,
) {
    let mut block = vec![0; 16 << 10];
    loop {
        if weather.wait_for(|weather| *weather != Weather::Stuck).await.is_err() {
            return;
        }
        let read = tokio::select! {
            read = from.read(&mut block) => read,
            _ = weather.changed() => continue,
        };
        let Ok(length @ 1..) = read else { return };
        if *weather.borrow() == Weather::Fair && to.write_all(&block[..length]).await.is_err() {
            return;
        }
    }
}
