//! A TCP proxy before a Postgres server, to make Postgres unavailable, or silent, for the roles of a test.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

use crate::silence::Silence;

/// Octets that are passed on at a time.
const BUFFER: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub struct PostgresProxy {
    port: u16,
    faults: watch::Sender<InjectedFaults>,
    /// New connections that were closed at once.
    refused: Arc<AtomicUsize>,
}

/// The faults that a test has set.
#[derive(Debug, Clone, Copy, Default)]
struct InjectedFaults {
    disconnected: bool,
    silence: Option<Silence>,
}

impl PostgresProxy {
    /// A proxy on a free port of loopback, before the shared server.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start() -> Self {
        Self::start_before(crate::postgres::server().socket_directory().join(".s.PGSQL.5432")).await
    }

    /// A proxy on a free port of loopback, before the server of this socket.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start_before(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let faults = watch::Sender::new(InjectedFaults::default());
        let of_all = faults.clone();
        let refused = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&refused);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (mut faults, socket) = (of_all.subscribe(), socket.clone());
                if faults.borrow_and_update().disconnected {
                    count.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(server) = UnixStream::connect(socket).await else { return };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    let to_server = pass(from_client, to_server, faults.clone(), Silence::is_to_server);
                    let to_client = pass(from_server, to_client, faults.clone(), Silence::is_to_client);
                    tokio::select! {
                        // What is sent after a cut does not reach Postgres.
                        biased;
                        _ = faults.wait_for(|faults| faults.disconnected) => {}
                        _ = async { tokio::join!(to_server, to_client) } => {}
                    }
                });
            }
        });
        Self { port, faults, refused }
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// New connections that it closed at once.
    pub fn refused_count(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Closes all connections, including new ones.
    pub fn cut(&self) {
        self.faults.send_modify(|faults| faults.disconnected = true);
    }

    /// Passes nothing on in these directions; connections stay open, and new ones are accepted.
    pub fn fall_silent(&self, silence: Silence) {
        self.faults.send_modify(|faults| faults.silence = Some(silence));
    }

    /// Passes connections on again.
    pub fn restore(&self) {
        self.faults.send_replace(InjectedFaults::default());
    }
}

/// Passes on what arrives, in one direction, until either end closes.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut faults: watch::Receiver<InjectedFaults>,
    is_silenced: fn(Silence) -> bool,
) {
    let is_silent = |faults: &InjectedFaults| faults.silence.is_some_and(is_silenced);
    let mut buffer = vec![0; BUFFER];
    loop {
        if faults.wait_for(|faults| !is_silent(faults)).await.is_err() {
            return;
        }
        let read = tokio::select! {
            biased;
            fell_silent = async { faults.wait_for(is_silent).await.is_ok() } => {
                if fell_silent {
                    continue;
                }
                // The proxy is gone.
                return;
            }
            read = from.read(&mut buffer) => read.unwrap_or(0),
        };
        if read == 0 {
            // The other direction may still have something to pass on.
            let _ = to.shutdown().await;
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
