//! The listening socket: accepts connections within the limits, and drains.

mod connection_limits;
mod proxy_header;

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ipnet::IpNet;
use tempmail_admission::{Client, ClientNetwork, Share};
use tempmail_runtime::listener::{Listener, bound_socket};
use tempmail_runtime::shutdown::Shutdown;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub(crate) use self::connection_limits::ConnectionLimits;
use self::connection_limits::{ConnectionLimit, ConnectionPermit};
use self::proxy_header::CarriedClient;
use crate::connection::SmtpServer;
use crate::smtp::{Peer, reply};

/// Octets of replies that the kernel keeps for a client that does not read them.
const SEND_BUFFER: usize = 16 << 10;
/// Pause after an error, usually that the process has too many open files.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// What a connection holds while it is served.
enum ListenerPermit {
    Direct(ConnectionPermit),
    /// Of a load balancer, whose client is not known yet.
    Proxied(Share<ClientNetwork>),
}

/// Binds the socket that clients connect to.
///
/// # Errors
/// The address is in use, or not one of this host.
pub(crate) fn bind(address: SocketAddr) -> anyhow::Result<Listener> {
    let open = || -> std::io::Result<Listener> {
        let socket = bound_socket(address)?;
        // Connections inherit it, which saves a system call for each.
        socket.set_tcp_nodelay(true)?;
        // As are these: replies are short.
        socket.set_send_buffer_size(SEND_BUFFER)?;
        Listener::from_socket(socket)
    };
    open().with_context(|| format!("smtp.listen: {address}"))
}

/// Accepts connections until the drain, then waits for the sessions to end; aborts them at the stop.
/// Connections from `proxies` begin with a header of the PROXY protocol.
pub(crate) async fn accept(
    listener: Listener,
    server: Arc<SmtpServer>,
    limits: ConnectionLimits,
    proxies: Vec<IpNet>,
    shutdown: Shutdown,
) {
    let mut sessions = JoinSet::new();
    let mut failing = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.drain.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = sessions.join_next() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                failing = false;
                let peer = limits.peer(peer.ip());
                let permit = if proxies.iter().any(|network| network.contains(&peer.address)) {
                    limits.acquire_for_proxy().map(ListenerPermit::Proxied)
                } else {
                    limits.acquire(peer).map(ListenerPermit::Direct)
                };
                let permit = match permit {
                    Ok(permit) => permit,
                    Err(limit) => {
                        reject(&server, stream, limit);
                        continue;
                    }
                };
                server.metrics.accepted.increment(1);
                server.metrics.connections.increment(1);
                let (server, limits) = (Arc::clone(&server), limits.clone());
                sessions.spawn(async move {
                    match permit {
                        ListenerPermit::Direct(permit) => server.serve(stream, peer, permit.activity()).await,
                        // Boxed, so that a connection without a proxy reserves no memory for it.
                        ListenerPermit::Proxied(share) => {
                            Box::pin(serve_proxied(&server, stream, &limits, share)).await;
                        }
                    }
                    server.metrics.connections.decrement(1);
                });
            }
            // The client disconnected before it was accepted.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "connections can't be accepted");
                }
                failing = true;
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }
    drop(listener);
    tokio::select! {
        () = shutdown.stop.cancelled() => {
            tracing::warn!(sessions = sessions.len(), "open sessions are aborted");
            sessions.shutdown().await;
        }
        () = async { while sessions.join_next().await.is_some() {} } => {}
    }
}

/// Serves the client behind a load balancer, as if it had connected itself. Without a valid header the connection
/// is closed.
async fn serve_proxied(
    server: &SmtpServer,
    mut stream: TcpStream,
    limits: &ConnectionLimits,
    share: Share<ClientNetwork>,
) {
    match proxy_header::read(&mut stream).await {
        Ok(CarriedClient::Client(address)) => {
            let client = Client::Address(address);
            match limits.acquire_for_client(share, client) {
                Ok(permit) => {
                    server.serve(stream, Peer { address, client: Some(client) }, permit.activity()).await;
                }
                Err(limit) => reject(server, stream, limit),
            }
        }
        Ok(CarriedClient::HealthCheck) => server.serve_health_check(stream).await,
        Err(_) => server.metrics.proxy_headers_refused.increment(1),
    }
}

/// Sends one reply to a client that gets no session. It fits into the buffer of the socket, or is not
/// sent.
fn reject(server: &SmtpServer, stream: TcpStream, limit: ConnectionLimit) {
    let reply = match limit {
        ConnectionLimit::Process => reply::TOO_MANY_CONNECTIONS,
        ConnectionLimit::Peer => reply::TOO_MANY_PEER_CONNECTIONS,
    };
    server.metrics.rejected.increment(1);
    server.metrics.limited(reply);
    if let Ok(mut stream) = stream.into_std() {
        let mut line = Vec::new();
        reply.write(&mut line);
        // A client that has disconnected needs no reply.
        stream.write_all(&line).ok();
    }
}
