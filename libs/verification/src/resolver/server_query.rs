//! A query to one server over UDP or TCP, with retries, until it answers or the query is given up. Messages that do
//! not answer the query are ignored, so that a forger has to guess the port, the id and the case of each letter of
//! the name.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use hickory_proto::op::{DnsRequest, DnsRequestOptions, Message, MessageType, OpCode, Query};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// Over which transport servers are queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP, and TCP where UDP does not bring the whole answer.
    UdpFirst,
    /// TCP, which can't be forged from afar, for the query that decides. The answer over UDP counts if the server
    /// does not answer over TCP.
    TcpOnly,
}

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

/// Bytes of an answer over UDP: not fragmented in any network (RFC 9715).
const UDP_PAYLOAD: u16 = 1232;
/// Bytes of an answer over TCP: more than any domain needs, and small enough for many at once.
const TCP_PAYLOAD: u16 = 16 * 1024;

/// An answer over UDP.
#[derive(Debug)]
pub(super) enum Datagram {
    /// The whole answer.
    Whole(Message),
    /// The answer is truncated, or does not repeat the name letter by letter, so that it may be forged. TCP helps in
    /// both cases.
    NeedsTcp,
}

/// A message with `query`, a new id, and the letters of the name in random case.
pub(super) fn request(query: Query, recursion: bool) -> Message {
    let mut options = DnsRequestOptions::default();
    options.recursion_desired = recursion;
    options.case_randomization = true;
    options.edns_payload_len = UDP_PAYLOAD;
    DnsRequest::from_query(query, options).into_parts().0
}

/// Queries over UDP, from a new port. Has no timeout.
pub(super) async fn over_udp(server: SocketAddr, request: &Message) -> io::Result<Datagram> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(&request.to_vec().map_err(io::Error::other)?).await?;
    let mut buffer = [0; UDP_PAYLOAD as usize];
    loop {
        let length = socket.recv(&mut buffer).await?;
        let Ok(answer) = Message::from_vec(&buffer[..length]) else { continue };
        if !is_answer(&answer, request) {
            continue;
        }
        let same_letters = answer.queries[0].name.eq_case(&request.queries[0].name);
        let whole = same_letters && !answer.metadata.truncation;
        return Ok(if whole { Datagram::Whole(answer) } else { Datagram::NeedsTcp });
    }
}

/// Queries over a new TCP connection. Has no timeout.
pub(super) async fn over_tcp(server: SocketAddr, request: &Message) -> io::Result<Message> {
    let mut stream = TcpStream::connect(server).await?;
    let bytes = request.to_vec().map_err(io::Error::other)?;
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), &bytes[..]].concat()).await?;
    let length = stream.read_u16().await?;
    if length > TCP_PAYLOAD {
        return Err(io::Error::other("the answer is too large"));
    }
    let mut bytes = vec![0; length.into()];
    stream.read_exact(&mut bytes).await?;
    let answer = Message::from_vec(&bytes).map_err(io::Error::other)?;
    let complete = is_answer(&answer, request) && !answer.metadata.truncation;
    if complete { Ok(answer) } else { Err(io::Error::other("the message does not answer the query")) }
}

/// Whether the message answers this request; the case of letters does not matter.
fn is_answer(answer: &Message, request: &Message) -> bool {
    answer.metadata.id == request.metadata.id
        && answer.metadata.message_type == MessageType::Response
        && answer.metadata.op_code == OpCode::Query
        && answer.queries == request.queries
}
