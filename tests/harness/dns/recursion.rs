//! A recursive resolver for closed networks: queries the servers of each name's domain in turn.

use std::io;
use std::iter;
use std::net::{Ipv4Addr, SocketAddr};

use hickory_proto::op::{Message, Metadata, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use hickory_server::server::{Request, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::Domains;
use crate::wait::DEADLINE;

/// Maximum length of a CNAME chain.
const MAX_ALIASES: usize = 16;

/// The result of a resolution.
struct Resolution {
    response_code: ResponseCode,
    answers: Vec<Record>,
    authorities: Vec<Record>,
}

/// Replies as the domains' servers do, following aliases.
pub(crate) async fn answer(
    domains: &Domains,
    request: &Request,
    mut answers: impl ResponseHandler,
) -> ResponseInfo {
    let query = request.request_info().expect("one question").query.original().clone();
    let resolution = resolve(domains, query).await;
    let mut metadata = Metadata::response_from_request(&request.metadata);
    metadata.recursion_available = true;
    metadata.response_code = resolution.response_code;
    let response = MessageResponseBuilder::from_message_request(request).build(
        metadata,
        resolution.answers.iter(),
        resolution.authorities.iter(),
        iter::empty(),
        iter::empty(),
    );
    answers.send_response(response).await.expect("the answer can be sent")
}

async fn resolve(domains: &Domains, query: Query) -> Resolution {
    let (mut at, record_type) = (query.name().clone(), query.query_type());
    let mut answers = Vec::new();
    for _ in 0..MAX_ALIASES {
        let Some(message) = query_any(domains, &at, record_type).await else { break };
        let here: Vec<_> = message.answers.iter().filter(|record| record.name == at).cloned().collect();
        let target = here.iter().find_map(|record| match &record.data {
            RData::CNAME(target) => Some(target.0.clone()),
            _ => None,
        });
        answers.extend(here);
        let Some(target) = target else {
            let response_code = message.metadata.response_code;
            return Resolution { response_code, answers, authorities: message.authorities };
        };
        at = target;
    }
    Resolution { response_code: ResponseCode::ServFail, answers: Vec::new(), authorities: Vec::new() }
}

/// The first reply of a server of the name's domain.
async fn query_any(domains: &Domains, at: &Name, record_type: RecordType) -> Option<Message> {
    for server in domains.servers_of(at) {
        // The client gives up much earlier.
        let reply = timeout(DEADLINE, query(server.address(), at, record_type)).await;
        if let Ok(Ok(message)) = reply {
            return Some(message);
        }
    }
    None
}

async fn query(server: SocketAddr, at: &Name, record_type: RecordType) -> io::Result<Message> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect(server).await?;
    let mut question = Message::query();
    question.add_query(Query::query(at.clone(), record_type));
    socket.send(&question.to_vec().map_err(io::Error::other)?).await?;
    let mut buffer = [0; 512];
    let length = socket.recv(&mut buffer).await?;
    Message::from_vec(&buffer[..length]).map_err(io::Error::other)
}
