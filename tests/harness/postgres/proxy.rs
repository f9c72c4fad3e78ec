//! A TCP proxy before the Postgres socket, to take Postgres away from the roles.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

/// Passes connections on while Postgres is "there".
#[derive(Debug)]
pub struct PostgresProxy {
    port: u16,
    there: Arc<watch::Sender<bool>>,
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
        let there = Arc::new(watch::Sender::new(true));
        let state = Arc::clone(&there);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (mut state, socket) = (state.subscribe(), socket.clone());
                if !*state.borrow_and_update() {
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(mut server) = UnixStream::connect(socket).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = state.changed() => {}
                    }
                });
            }
        });
        Self { port, there }
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection and takes no new one.
    pub fn cut(&self) {
        self.there.send_replace(false);
    }

    /// Passes connections on again.
    pub fn restore(&self) {
        self.there.send_replace(true);
    }
}
