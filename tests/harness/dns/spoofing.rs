//! An attacker who sees each query over UDP and replies before the server does.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::{RData, Record};
use tokio::net::UdpSocket;

use super::server::Sockets;
use super::zone::name;

/// What gives a spoofed reply away, beside its wrong records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoofedReply {
    /// A wrong message id.
    WrongId,
    /// Another query.
    WrongQuestion,
    /// Another case of the letters in the query. The real reply is not sent over UDP then, because some
    /// servers don't keep the case.
    WrongCase,
    /// Another source address.
    WrongAddress,
    /// Bytes that are no DNS message.
    Garbage,
}

/// The record in spoofed replies.
const SPOOFED_TXT: &str = "tempmail-verify=forged";

/// Listens at the UDP address of the server, which gets a hidden one.
pub(crate) async fn intercept(sockets: Sockets, spoofed: SpoofedReply) -> Sockets {
    let hidden = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has a free port");
    let server = hidden.local_addr().expect("a socket has an address");
    let elsewhere =
        UdpSocket::bind((another(sockets.address.ip()), 0)).await.expect("loopback has a free port");
    let (public, sockets) = sockets.with_udp(hidden);
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok((length, client)) = public.recv_from(&mut buffer).await {
            let query = &buffer[..length];
            let reply = forged_reply(query, spoofed);
            let from = if spoofed == SpoofedReply::WrongAddress { &elsewhere } else { &public };
            let _ = from.send_to(&reply, client).await;
            if spoofed != SpoofedReply::WrongCase
                && let Some(reply) = relay(query, server).await
            {
                let _ = public.send_to(&reply, client).await;
            }
        }
    });
    sockets
}

fn forged_reply(query: &[u8], spoofed: SpoofedReply) -> Vec<u8> {
    if spoofed == SpoofedReply::Garbage {
        return query[..query.len().min(14)].to_vec();
    }
    let mut message = Message::from_vec(query).expect("the client sends messages").into_response();
    message.metadata.authoritative = true;
    let at = message.queries[0].name().clone();
    message.add_answer(Record::from_rdata(at.clone(), 0, RData::TXT(TXT::new(vec![SPOOFED_TXT.to_owned()]))));
    match spoofed {
        SpoofedReply::WrongId => message.metadata.id = message.metadata.id.wrapping_add(1),
        SpoofedReply::WrongQuestion => {
            let record_type = message.queries[0].query_type();
            message.queries = vec![Query::query(name("another.test"), record_type)];
        }
        SpoofedReply::WrongCase => {
            // At least one letter differs from what was asked.
            let lower = at.to_lowercase();
            let changed = if lower.eq_case(&at) { name(&at.to_ascii().to_ascii_uppercase()) } else { lower };
            message.queries[0].set_name(changed);
        }
        SpoofedReply::WrongAddress | SpoofedReply::Garbage => {}
    }
    message.to_vec().expect("a message can be written")
}

async fn relay(query: &[u8], server: SocketAddr) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(query).await.ok()?;
    let mut buffer = [0; 4096];
    let length = socket.recv(&mut buffer).await.ok()?;
    Some(buffer[..length].to_vec())
}

/// Another address of loopback.
fn another(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() ^ 0x80).into(),
        IpAddr::V6(_) => address,
    }
}
