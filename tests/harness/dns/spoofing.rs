//! Somebody who sees each question over UDP and answers before the server does.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::{RData, Record};
use tokio::net::UdpSocket;

use super::server::Sockets;
use super::zone::name;

/// What is wrong with the spoofing's answers, whose records are wrong in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoofedReply {
    /// The id, which the spoofing guessed.
    WrongId,
    /// The question.
    WrongQuestion,
    /// The case of the letters in the question. (Nothing else comes over UDP then: some
    /// servers don't keep the case.)
    WrongCase,
    /// The address that they come from.
    WrongAddress,
    /// They are no message.
    Garbage,
}

/// What the forged answers say.
const LIE: &str = "tempmail-verify=forged";

/// Takes the server's place at its UDP address; the server gets a hidden one.
pub(crate) async fn stand_before(sockets: Sockets, forgery: SpoofedReply) -> Sockets {
    let hidden = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has a free port");
    let server = hidden.local_addr().expect("a socket has an address");
    let elsewhere =
        UdpSocket::bind((another(sockets.address.ip()), 0)).await.expect("loopback has a free port");
    let (public, sockets) = sockets.with_udp(hidden);
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok((length, asker)) = public.recv_from(&mut buffer).await {
            let question = &buffer[..length];
            let forged = forge(question, forgery);
            let from = if forgery == SpoofedReply::WrongAddress { &elsewhere } else { &public };
            let _ = from.send_to(&forged, asker).await;
            if forgery != SpoofedReply::WrongCase
                && let Some(answer) = relay(question, server).await
            {
                let _ = public.send_to(&answer, asker).await;
            }
        }
    });
    sockets
}

fn forge(question: &[u8], forgery: SpoofedReply) -> Vec<u8> {
    if forgery == SpoofedReply::Garbage {
        return question[..question.len().min(14)].to_vec();
    }
    let mut message = Message::from_vec(question).expect("the asker sends messages").into_response();
    message.metadata.authoritative = true;
    let at = message.queries[0].name().clone();
    message.add_answer(Record::from_rdata(at.clone(), 0, RData::TXT(TXT::new(vec![LIE.to_owned()]))));
    match forgery {
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

async fn relay(question: &[u8], server: SocketAddr) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(question).await.ok()?;
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
