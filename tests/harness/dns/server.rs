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
use super::fault::{Fault, ReplyGate};
use super::recursion;
use super::zone::{Zone, name};

/// A connection without a question is closed after this.
const IDLE: Duration = Duration::from_secs(60);
/// Answers that may wait in a connection.
const ANSWERS: usize = 16;

/// What a server is for.
pub(crate) enum Role {
    /// Responsible for its zones.
    Authoritative,
    /// A resolver that remembers its zones.
    Seed,
    /// A resolver that finds answers at the servers of all domains.
    Recursive(Arc<Domains>),
}

/// Where a server listens.
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

    /// Exchanges the UDP socket; the address that the server is known by stays.
    pub(crate) fn with_udp(self, udp: UdpSocket) -> (UdpSocket, Self) {
        (self.udp, Self { address: self.address, udp, tcp: self.tcp })
    }
}

/// A question as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedQuery {
    /// The name, letter by letter.
    pub name: String,
    /// What is asked for.
    pub record_type: RecordType,
    /// Whether it came over TCP.
    pub over_tcp: bool,
    /// Whether the answer shall be found elsewhere if it is not here.
    pub recursion_desired: bool,
    /// Octets of an answer over UDP that the asker takes (EDNS).
    pub payload: Option<u16>,
}

/// A name server. Clones are the same server, which ends with the last of them.
#[derive(Clone)]
pub struct NameServer(Arc<Inner>);

struct Inner {
    host: String,
    address: SocketAddr,
    state: Arc<State>,
    _server: Server<Handler>,
}

struct State {
    role: Role,
    catalog: RwLock<Catalog>,
    zones: Mutex<BTreeMap<Name, Zone>>,
    fault: Mutex<Option<Failing>>,
    asked: Mutex<Vec<ReceivedQuery>>,
}

/// What goes wrong, for which name alone if one is given.
#[derive(Clone)]
struct Failing {
    fault: Fault,
    only: Option<Name>,
}

impl fmt::Debug for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NameServer({} at {})", self.0.host, self.0.address)
    }
}

impl NameServer {
    pub(crate) fn start(host: &str, sockets: Sockets, role: Role) -> Self {
        let state = Arc::new(State {
            role,
            catalog: RwLock::new(Catalog::new()),
            zones: Mutex::default(),
            fault: Mutex::default(),
            asked: Mutex::default(),
        });
        let mut server = Server::new(Handler(Arc::clone(&state)));
        server.register_socket(sockets.udp);
        if let Some(listener) = sockets.tcp {
            server.register_listener(listener, IDLE, ANSWERS);
        }
        Self(Arc::new(Inner { host: host.to_owned(), address: sockets.address, state, _server: server }))
    }

    /// Its host name.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Makes it behave badly from the next question on.
    pub fn set_fault(&self, fault: Fault) {
        self.set_failing(Some(Failing { fault, only: None }));
    }

    /// Makes it behave badly to questions about one name.
    pub fn set_fault_for(&self, at: &str, fault: Fault) {
        self.set_failing(Some(Failing { fault, only: Some(name(at)) }));
    }

    /// Makes it behave well again.
    pub fn clear_fault(&self) {
        self.set_failing(None);
    }

    fn set_failing(&self, failing: Option<Failing>) {
        *self.0.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = failing;
    }

    /// Keeps its answers back.
    pub fn hold_replies(&self) -> ReplyGate {
        let hold = ReplyGate::new();
        self.set_fault(Fault::Held(hold.clone()));
        hold
    }

    /// Makes it lie over UDP about TXT records, and keeps its answers over TCP back.
    pub fn spoof_udp_and_hold_tcp(&self, texts: &[&str]) -> ReplyGate {
        let hold = ReplyGate::new();
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        self.set_fault(Fault::LiesOverUdpWhileTcpIsHeld(texts, hold.clone()));
        hold
    }

    /// The questions that came so far.
    pub fn queries(&self) -> Vec<ReceivedQuery> {
        self.0.state.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes it responsible for a domain that has no records yet.
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
    /// The server is not responsible for it.
    pub async fn set(&self, at: &str, record_type: RecordType, records: Vec<RData>) {
        self.zone_of(at).set(&name(at), record_type, records).await;
    }

    /// Takes all records away from a name.
    ///
    /// # Panics
    /// The server is not responsible for it.
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
            above.max_by_key(|(apex, _)| apex.num_labels()).expect("the server is responsible for the name");
        zone.clone()
    }
}

struct Handler(Arc<State>);

impl Handler {
    fn note(&self, request: &Request) {
        let Ok(info) = request.request_info() else { return };
        let query = info.query.original();
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).push(ReceivedQuery {
            name: query.name().to_ascii(),
            record_type: query.query_type(),
            over_tcp: request.protocol() == Protocol::Tcp,
            recursion_desired: request.metadata.recursion_desired,
            payload: request.edns.as_ref().map(hickory_proto::op::Edns::max_payload),
        });
    }

    fn fault_for(&self, request: &Request) -> Option<Fault> {
        let failing = self.0.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let at = request.request_info().ok()?.query.original().name().clone();
        failing.only.is_none_or(|only| only == at).then_some(failing.fault)
    }

    async fn answer<R: ResponseHandler, T: Time>(&self, request: &Request, answers: R) -> ResponseInfo {
        if let Role::Recursive(domains) = &self.0.role {
            return recursion::answer(domains, request, answers).await;
        }
        let resolver = matches!(self.0.role, Role::Seed);
        let answers = Stamp { answers, not_responsible: resolver, resolver };
        self.0.catalog.read().await.handle_request::<_, T>(request, answers).await
    }
}

#[async_trait::async_trait]
impl RequestHandler for Handler {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        answers: R,
    ) -> ResponseInfo {
        self.note(request);
        let over_tcp = request.protocol() == Protocol::Tcp;
        let is_txt = request.request_info().is_ok_and(|info| info.query.query_type() == RecordType::TXT);
        match self.fault_for(request) {
            Some(Fault::ServFail) => send(request, answers, ResponseCode::ServFail, Plain::default()).await,
            Some(Fault::Refused) => send(request, answers, ResponseCode::Refused, Plain::default()).await,
            Some(Fault::Lame) => {
                let answers = Stamp { answers, not_responsible: true, resolver: false };
                self.answer::<_, T>(request, answers).await
            }
            Some(Fault::Referral { authoritative }) => {
                let plain = Plain { authoritative, refer: true, ..Plain::default() };
                send(request, answers, ResponseCode::NoError, plain).await
            }
            Some(Fault::Truncated) if !over_tcp => {
                let plain = Plain { authoritative: true, truncated: true, ..Plain::default() };
                send(request, answers, ResponseCode::NoError, plain).await
            }
            Some(Fault::Silent) => unanswered(request),
            Some(Fault::SilentOverTcp) if over_tcp => unanswered(request),
            Some(Fault::LiesOverUdp(texts) | Fault::LiesOverUdpWhileTcpIsHeld(texts, _))
                if !over_tcp && is_txt =>
            {
                let plain = Plain { authoritative: true, texts, ..Plain::default() };
                send(request, answers, ResponseCode::NoError, plain).await
            }
            Some(Fault::LiesOverUdpWhileTcpIsHeld(_, hold)) if over_tcp => {
                hold.wait().await;
                self.answer::<_, T>(request, answers).await
            }
            Some(Fault::Held(hold)) => {
                hold.wait().await;
                self.answer::<_, T>(request, answers).await
            }
            _ => self.answer::<_, T>(request, answers).await,
        }
    }
}

/// An answer that comes from no zone.
#[derive(Default)]
struct Plain {
    authoritative: bool,
    truncated: bool,
    refer: bool,
    texts: Vec<String>,
}

async fn send(
    request: &Request,
    mut answers: impl ResponseHandler,
    response_code: ResponseCode,
    plain: Plain,
) -> ResponseInfo {
    let mut metadata = Metadata::response_from_request(&request.metadata);
    metadata.response_code = response_code;
    metadata.authoritative = plain.authoritative;
    metadata.truncation = plain.truncated;
    let at =
        request.request_info().map_or_else(|_| Name::root(), |info| info.query.original().name().clone());
    let texts = plain.texts.into_iter().map(|text| RData::TXT(TXT::new(vec![text])));
    let records: Vec<_> = texts.map(|data| Record::from_rdata(at.clone(), 0, data)).collect();
    let others = Record::from_rdata(name("test"), 0, RData::NS(NS(name("elsewhere.test"))));
    let response = MessageResponseBuilder::from_message_request(request).build(
        metadata,
        records.iter(),
        plain.refer.then_some(&others),
        iter::empty(),
        iter::empty(),
    );
    answers.send_response(response).await.unwrap_or_else(|_| unanswered(request))
}

fn unanswered(request: &Request) -> ResponseInfo {
    let metadata = Metadata::new(request.metadata.id, MessageType::Response, OpCode::Query);
    ResponseInfo::from(Header { metadata, counts: HeaderCounts::default() })
}

/// Changes what answers say of the server.
#[derive(Clone)]
struct Stamp<R> {
    answers: R,
    not_responsible: bool,
    resolver: bool,
}

#[async_trait::async_trait]
impl<R: ResponseHandler> ResponseHandler for Stamp<R> {
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
        metadata.authoritative &= !self.not_responsible;
        metadata.recursion_available = self.resolver;
        self.answers.send_response(response).await
    }
}
