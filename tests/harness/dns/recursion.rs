//! A resolver for closed networks: asks the servers of each name's domain in turn.

use std::io;
use std::iter;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Message, Metadata, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use hickory_server::server::{Request, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::Domains;

/// Aliases before it gives up.
const ALIASES: usize = 16;
/// Wait for a server.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a resolver found.
struct Found {
    response_code: ResponseCode,
    answers: Vec<Record>,
    authorities: Vec<Record>,
}

/// Answers as the domains' servers do, following aliases.
pub(crate) async fn answer(
    domains: &Domains,
    request: &Request,
    mut answers: impl ResponseHandler,
) -> ResponseInfo {
    let query = request.request_info().expect("one question").query.original().clone();
    let found = find(domains, query).await;
    let mut metadata = Metadata::response_from_request(&request.metadata);
    metadata.recursion_available = true;
    metadata.response_code = found.response_code;
    let response = MessageResponseBuilder::from_message_request(request).build(
        metadata,
        found.answers.iter(),
        found.authorities.iter(),
        iter::empty(),
        iter::empty(),
    );
    answers.send_response(response).await.expect("the answer can be sent")
}

async fn find(domains: &Domains, query: Query) -> Found {
    let (mut at, record_type) = (query.name().clone(), query.query_type());
    let mut answers = Vec::new();
    for _ in 0..ALIASES {
        let Some(message) = ask_any(domains, &at, record_type).await else { break };
        let here: Vec<_> = message.answers.iter().filter(|record| record.name == at).cloned().collect();
        let target = here.iter().find_map(|record| match &record.data {
            RData::CNAME(target) => Some(target.0.clone()),
            _ => None,
        });
        answers.extend(here);
        let Some(target) = target else {
            let response_code = message.metadata.response_code;
            return Found { response_code, answers, authorities: message.authorities };
        };
        at = target;
    }
    Found { response_code: ResponseCode::ServFail, answers: Vec::new(), authorities: Vec::new() }
}

/// The first answer of any server of the name's domain.
async fn ask_any(domains: &Domains, at: &Name, record_type: RecordType) -> Option<Message> {
    for server in domains.servers_of(at) {
        let asked = timeout(PATIENCE, ask(server.address(), at, record_type)).await;
        if let Ok(Ok(message)) = asked {
            return Some(message);
        }
    }
    None
}

async fn ask(server: SocketAddr, at: &Name, record_type: RecordType) -> io::Result<Message> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect(server).await?;
    let mut question = Message::query();
    question.add_query(Query::query(at.clone(), record_type));
    socket.send(&question.to_vec().map_err(io::Error::other)?).await?;
    let mut buffer = [0; 512];
    let length = socket.recv(&mut buffer).await?;
    Message::from_vec(&buffer[..length]).map_err(io::Error::other)
}
