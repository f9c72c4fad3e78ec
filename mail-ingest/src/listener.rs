//! The listening socket: accepts, limits, and drains.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use socket2::{Domain, Protocol, Socket, Type};
use tempmail_runtime::shutdown::Shutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::connection::Server;
use crate::limits::ConnectionLimits;
use crate::smtp::{Reply, reply};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 4_096;
/// Pause when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds the socket that clients connect to.
///
/// # Errors
/// The address is taken or not ours.
pub fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let open = || -> std::io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        // Inherited by the connections: saves a call for each.
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    open().with_context(|| format!("smtp.listen: {address}"))
}

/// Accepts until the drain begins, then waits until every session has ended, and cuts at the
/// stop.
pub async fn accept(
    listener: TcpListener,
    server: Arc<Server>,
    limits: ConnectionLimits,
    shutdown: Shutdown,
) {
    let mut sessions = JoinSet::new();
    let mut short_of_files = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.drain.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = sessions.join_next() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                short_of_files = false;
                let Some(place) = limits.admit(peer.ip()) else {
                    server.metrics.refused.increment(1);
                    turn_away(stream, reply::TOO_MANY_CONNECTIONS);
                    continue;
                };
                server.metrics.accepted.increment(1);
                server.metrics.connections.increment(1);
                let server = Arc::clone(&server);
                sessions.spawn(async move {
                    server.serve(stream, peer.ip()).await;
                    server.metrics.connections.decrement(1);
                    drop(place);
                });
            }
            // The client gave up before it was accepted.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !short_of_files {
                    tracing::warn!(%error, "connections can't be accepted");
                }
                short_of_files = true;
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    tokio::select! {
        () = shutdown.stop.cancelled() => {
            tracing::warn!(sessions = sessions.len(), "sessions are cut");
            sessions.shutdown().await;
        }
        () = async { while sessions.join_next().await.is_some() {} } => {}
    }
}

/// Says one line to a client that gets no session. It fits into the socket's buffer, or is not
/// said.
fn turn_away(stream: TcpStream, reply: Reply) {
    if let Ok(mut stream) = stream.into_std() {
        let mut line = Vec::new();
        reply.write(&mut line);
        // Nobody is there to hear of a failure.
        stream.write_all(&line).ok();
    }
}
