//! A query to one server, with retries, until it answers or the query is given up.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use hickory_proto::op::{Message, Query};
use tokio::time::timeout;

use super::transport::Transport;
use super::wire::{Datagram, over_tcp, over_udp, request};

/// Attempts over each transport.
const ATTEMPTS: usize = 2;
/// Timeout of an attempt.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A query to a server.
#[derive(Debug)]
pub(super) struct ServerQuery {
    pub server: SocketAddr,
    pub query: Query,
    /// Whether the server is requested to find the answer elsewhere.
    pub recursion: bool,
}

impl ServerQuery {
    /// The server's answer, which may be an error.
    pub(super) async fn answer(&self, transport: Transport) -> Option<Message> {
        match transport {
            Transport::UdpFirst => self.udp_first().await,
            Transport::TcpOnly => {
                // Both at once: a server that is silent over TCP would take all the time.
                match select(pin!(self.tcp_only()), pin!(self.udp_first())).await {
                    Either::Left((Some(answer), _)) => Some(answer),
                    Either::Left((None, udp)) => udp.await,
                    Either::Right((fallback, tcp)) => tcp.await.or(fallback),
                }
            }
        }
    }

    async fn udp_first(&self) -> Option<Message> {
        match self.datagram().await {
            Some(Datagram::Whole(answer)) => return Some(answer),
            Some(Datagram::NeedsTcp) => return self.stream().await,
            None => {}
        }
        let again = async {
            match self.datagram().await {
                Some(Datagram::Whole(answer)) => Some(answer),
                _ => None,
            }
        };
        // Over TCP at the same time: some networks let only that through.
        match select(pin!(again), pin!(self.stream())).await {
            Either::Left((Some(answer), _)) | Either::Right((Some(answer), _)) => Some(answer),
            Either::Left((None, stream)) => stream.await,
            Either::Right((None, again)) => again.await,
        }
    }

    async fn tcp_only(&self) -> Option<Message> {
        for _ in 0..ATTEMPTS {
            if let Some(answer) = self.stream().await {
                return Some(answer);
            }
        }
        None
    }

    async fn datagram(&self) -> Option<Datagram> {
        let request = request(self.query.clone(), self.recursion);
        timeout(TIMEOUT, over_udp(self.server, &request)).await.ok()?.ok()
    }

    async fn stream(&self) -> Option<Message> {
        let request = request(self.query.clone(), self.recursion);
        timeout(TIMEOUT, over_tcp(self.server, &request)).await.ok()?.ok()
    }
}
