//! A TCP proxy before the shared Postgres, to make Postgres unavailable for the roles of a test.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

/// See the module.
#[derive(Debug)]
pub struct PostgresProxy {
    port: u16,
    available: Arc<watch::Sender<bool>>,
}

impl PostgresProxy {
    /// A proxy on a free port of loopback.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start() -> Self {
        let socket: PathBuf = crate::postgres::server().socket_directory().join(".s.PGSQL.5432");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let available = Arc::new(watch::Sender::new(true));
        let state = Arc::clone(&available);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (mut state, socket) = (state.subscribe(), socket.clone());
                if !*state.borrow_and_update() {
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(mut server) = UnixStream::connect(socket).await else { return };
                    tokio::select! {
                        // What is sent after a cut does not reach Postgres.
                        biased;
                        _ = state.changed() => {}
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                    }
                });
            }
        });
        Self { port, available }
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Closes all connections, including new ones.
    pub fn cut(&self) {
        self.available.send_replace(false);
    }

    /// Passes connections on again.
    pub fn restore(&self) {
        self.available.send_replace(true);
    }
}
