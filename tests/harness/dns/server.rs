//! A name server over UDP and TCP.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::iter;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hickory_proto::op::{Header, HeaderCounts, MessageType, Metadata, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{NS, TXT};
use hickory_proto::rr::{LowerName, Name, RData, Record, RecordType};
use hickory_server::Server;
use hickory_server::net::NetError;
use hickory_server::net::runtime::Time;
use hickory_server::net::xfer::Protocol;
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::{Catalog, MessageResponse, MessageResponseBuilder};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::RwLock;

use super::Domains;
use super::fault::{NameServerFault, ReplyGate};
use super::recursion;
use super::zone::{Zone, name};

/// An idle TCP connection is closed after this time.
const IDLE: Duration = Duration::from_secs(60);
/// Replies that a TCP connection buffers.
const REPLY_BUFFER: usize = 16;

/// The role of a server.
pub(crate) enum ServerRole {
    /// Authoritative for its zones.
    Authoritative,
    /// A resolver that has its zones in its cache.
    Seed,
    /// A recursive resolver for all domains.
    Recursive(Arc<Domains>),
}

/// The sockets of a server.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub address: SocketAddr,
    udp: UdpSocket,
    tcp: Option<TcpListener>,
}

impl Sockets {
    pub(crate) async fn bind(address: SocketAddr, tcp: bool) -> io::Result<Self> {
        let udp = UdpSocket::bind(address).await?;
        let tcp = if tcp { Some(TcpListener::bind(address).await?) } else { None };
        Ok(Self { address, udp, tcp })
    }

    /// Replaces the UDP socket; the public address stays.
    pub(crate) fn with_udp(self, udp: UdpSocket) -> (UdpSocket, Self) {
        (self.udp, Self { address: self.address, udp, tcp: self.tcp })
    }
}

/// A received query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedQuery {
    /// The name, with the case of its letters.
    pub name: String,
    /// The record type.
    pub record_type: RecordType,
    /// Whether it came over TCP.
    pub over_tcp: bool,
    /// Whether the client desires recursion.
    pub recursion_desired: bool,
    /// Maximum size of a UDP reply in bytes (EDNS).
    pub udp_payload_size: Option<u16>,
}

/// A name server. Clones share one server, which stops with the last of them.
#[derive(Clone)]
pub struct NameServer(Arc<RunningNameServer>);

struct RunningNameServer {
    host: String,
    address: SocketAddr,
    state: Arc<ServerState>,
    _server: Server<QueryHandler>,
}

struct ServerState {
    role: ServerRole,
    catalog: RwLock<Catalog>,
    zones: Mutex<BTreeMap<Name, Zone>>,
    fault: Mutex<Option<ActiveFault>>,
    queries: Mutex<Vec<ReceivedQuery>>,
}

/// A fault, for one name or for all.
#[derive(Clone)]
struct ActiveFault {
    fault: NameServerFault,
    name: Option<Name>,
}

impl fmt::Debug for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NameServer({} at {})", self.0.host, self.0.address)
    }
}

impl NameServer {
    pub(crate) fn start(host: &str, sockets: Sockets, role: ServerRole) -> Self {
        let state = Arc::new(ServerState {
            role,
            catalog: RwLock::new(Catalog::new()),
            zones: Mutex::default(),
            fault: Mutex::default(),
            queries: Mutex::default(),
        });
        let mut server = Server::new(QueryHandler(Arc::clone(&state)));
        server.register_socket(sockets.udp);
        if let Some(listener) = sockets.tcp {
            server.register_listener(listener, IDLE, REPLY_BUFFER);
        }
        Self(Arc::new(RunningNameServer {
            host: host.to_owned(),
            address: sockets.address,
            state,
            _server: server,
        }))
    }

    /// Its host name.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Sets a fault for all queries from now on.
    pub fn set_fault(&self, fault: NameServerFault) {
        self.replace_fault(Some(ActiveFault { fault, name: None }));
    }

    /// Sets a fault for queries of one name.
    pub fn set_fault_for(&self, at: &str, fault: NameServerFault) {
        self.replace_fault(Some(ActiveFault { fault, name: Some(name(at)) }));
    }

    /// Removes the fault.
    pub fn clear_fault(&self) {
        self.replace_fault(None);
    }

    fn replace_fault(&self, failing: Option<ActiveFault>) {
        *self.0.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = failing;
    }

    /// Holds its replies.
    pub fn hold_replies(&self) -> ReplyGate {
        let hold = ReplyGate::new();
        self.set_fault(NameServerFault::Held(hold.clone()));
        hold
    }

    /// Replies to TXT queries over UDP with these texts, and holds its replies over TCP.
    pub fn spoof_udp_and_hold_tcp(&self, texts: &[&str]) -> ReplyGate {
        let hold = ReplyGate::new();
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        self.set_fault(NameServerFault::SpoofedUdpWithHeldTcp(texts, hold.clone()));
        hold
    }

    /// The queries received so far.
    pub fn queries(&self) -> Vec<ReceivedQuery> {
        self.0.state.queries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a zone without records.
    pub async fn add_zone(&self, apex: &str) {
        let apex = name(apex);
        let zone = Zone::empty(&apex);
        let handlers: Vec<Arc<dyn hickory_server::zone_handler::ZoneHandler>> = vec![zone.handler.clone()];
        self.0.state.catalog.write().await.upsert(LowerName::new(&apex), handlers);
        self.0.state.zones.lock().unwrap_or_else(PoisonError::into_inner).insert(apex, zone);
    }

    /// Sets the records of one type at a name.
    ///
    /// # Panics
    /// The server has no zone for it.
    pub async fn set(&self, at: &str, record_type: RecordType, records: Vec<RData>) {
        self.zone_of(at).set(&name(at), record_type, records).await;
    }

    /// Removes all records at a name.
    ///
    /// # Panics
    /// The server has no zone for it.
    pub async fn clear(&self, at: &str) {
        self.zone_of(at).clear(&name(at)).await;
    }

    pub(crate) async fn add(&self, at: &str, data: RData) {
        self.zone_of(at).add(&name(at), data).await;
    }

    fn zone_of(&self, at: &str) -> Zone {
        let zones = self.0.state.zones.lock().unwrap_or_else(PoisonError::into_inner);
        let above = zones.iter().filter(|(apex, _)| apex.zone_of(&name(at)));
        let (_, zone) =
            above.max_by_key(|(apex, _)| apex.num_labels()).expect("the server has a zone for the name");
        zone.clone()
    }
}

struct QueryHandler(Arc<ServerState>);

impl QueryHandler {
    fn record_query(&self, request: &Request) {
        let Ok(info) = request.request_info() else { return };
        let query = info.query.original();
        self.0.queries.lock().unwrap_or_else(PoisonError::into_inner).push(ReceivedQuery {
            name: query.name().to_ascii(),
            record_type: query.query_type(),
            over_tcp: request.protocol() == Protocol::Tcp,
            recursion_desired: request.metadata.recursion_desired,
            udp_payload_size: request.edns.as_ref().map(hickory_proto::op::Edns::max_payload),
        });
    }

    fn fault_for(&self, request: &Request) -> Option<NameServerFault> {
        let failing = self.0.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let at = request.request_info().ok()?.query.original().name().clone();
        failing.name.is_none_or(|name| name == at).then_some(failing.fault)
    }

    async fn answer<R: ResponseHandler, T: Time>(&self, request: &Request, answers: R) -> ResponseInfo {
        if let ServerRole::Recursive(domains) = &self.0.role {
            return recursion::answer(domains, request, answers).await;
        }
        let resolver = matches!(self.0.role, ServerRole::Seed);
        let answers = FlagOverride { answers, clear_authority: resolver, resolver };
        self.0.catalog.read().await.handle_request::<_, T>(request, answers).await
    }
}

#[async_trait::async_trait]
impl RequestHandler for QueryHandler {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        answers: R,
    ) -> ResponseInfo {
        self.record_query(request);
        let over_tcp = request.protocol() == Protocol::Tcp;
        let is_txt = request.request_info().is_ok_and(|info| info.query.query_type() == RecordType::TXT);
        match self.fault_for(request) {
            Some(NameServerFault::ServFail) => {
                send(request, answers, ResponseCode::ServFail, SyntheticReply::default()).await
            }
            Some(NameServerFault::Refused) => {
                send(request, answers, ResponseCode::Refused, SyntheticReply::default()).await
            }
            Some(NameServerFault::Lame) => {
                let answers = FlagOverride { answers, clear_authority: true, resolver: false };
                self.answer::<_, T>(request, answers).await
            }
            Some(NameServerFault::Referral { authoritative }) => {
                let reply = SyntheticReply { authoritative, refer: true, ..SyntheticReply::default() };
                send(request, answers, ResponseCode::NoError, reply).await
            }
            Some(NameServerFault::Truncated) if !over_tcp => {
                let reply =
                    SyntheticReply { authoritative: true, truncated: true, ..SyntheticReply::default() };
                send(request, answers, ResponseCode::NoError, reply).await
            }
            Some(NameServerFault::Silent) => unanswered(request),
            Some(NameServerFault::SilentOverTcp) if over_tcp => unanswered(request),
            Some(NameServerFault::SpoofedUdp(texts) | NameServerFault::SpoofedUdpWithHeldTcp(texts, _))
                if !over_tcp && is_txt =>
            {
                let reply = SyntheticReply { authoritative: true, texts, ..SyntheticReply::default() };
                send(request, answers, ResponseCode::NoError, reply).await
            }
            Some(NameServerFault::SpoofedUdpWithHeldTcp(_, hold)) if over_tcp => {
                hold.wait().await;
                self.answer::<_, T>(request, answers).await
            }
            Some(NameServerFault::Held(hold)) => {
                hold.wait().await;
                self.answer::<_, T>(request, answers).await
            }
            _ => self.answer::<_, T>(request, answers).await,
        }
    }
}

/// A reply that comes from no zone.
#[derive(Default)]
struct SyntheticReply {
    authoritative: bool,
    truncated: bool,
    refer: bool,
    texts: Vec<String>,
}

async fn send(
    request: &Request,
    mut answers: impl ResponseHandler,
    response_code: ResponseCode,
    reply: SyntheticReply,
) -> ResponseInfo {
    let mut metadata = Metadata::response_from_request(&request.metadata);
    metadata.response_code = response_code;
    metadata.authoritative = reply.authoritative;
    metadata.truncation = reply.truncated;
    let at =
        request.request_info().map_or_else(|_| Name::root(), |info| info.query.original().name().clone());
    let texts = reply.texts.into_iter().map(|text| RData::TXT(TXT::new(vec![text])));
    let records: Vec<_> = texts.map(|data| Record::from_rdata(at.clone(), 0, data)).collect();
    let others = Record::from_rdata(name("test"), 0, RData::NS(NS(name("elsewhere.test"))));
    let response = MessageResponseBuilder::from_message_request(request).build(
        metadata,
        records.iter(),
        reply.refer.then_some(&others),
        iter::empty(),
        iter::empty(),
    );
    answers.send_response(response).await.unwrap_or_else(|_| unanswered(request))
}

fn unanswered(request: &Request) -> ResponseInfo {
    let metadata = Metadata::new(request.metadata.id, MessageType::Response, OpCode::Query);
    ResponseInfo::from(Header { metadata, counts: HeaderCounts::default() })
}

/// Overrides the flags of replies.
#[derive(Clone)]
struct FlagOverride<R> {
    answers: R,
    clear_authority: bool,
    resolver: bool,
}

#[async_trait::async_trait]
impl<R: ResponseHandler> ResponseHandler for FlagOverride<R> {
    async fn send_response<'a>(
        &mut self,
        mut response: MessageResponse<
            '_,
            'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
        >,
    ) -> Result<ResponseInfo, NetError> {
        let metadata = response.metadata_mut();
        metadata.authoritative &= !self.clear_authority;
        metadata.recursion_available = self.resolver;
        self.answers.send_response(response).await
    }
}
