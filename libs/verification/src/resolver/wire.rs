//! A query to a server and its answer. Messages that do not answer the query are ignored, so that a forger has to guess
//! the port, the id and the case of each letter of the name.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hickory_proto::op::{DnsRequest, DnsRequestOptions, Message, MessageType, OpCode, Query};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

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
