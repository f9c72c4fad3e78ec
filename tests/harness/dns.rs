//! A DNS of one test on loopback: a seed resolver that knows the name servers of each domain, and those
//! servers, each with its own address and all with one port. Each server can be given a fault.

mod fault;
mod rebinding;
mod recursion;
mod server;
mod spoofing;
mod zone;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hickory_proto::rr::rdata::{A, CNAME, MX, NS, TXT};
use hickory_proto::rr::{Name, RData, RecordType};
use tempmail_runtime::config::{Dns, DnsMode};

pub use self::fault::{NameServerFault, ReplyGate};
pub use self::rebinding::RebindingServer;
pub use self::server::{NameServer, ReceivedQuery};
use self::server::{ServerRole, Sockets};
pub use self::spoofing::SpoofedReply;
use self::zone::name;
use crate::wait::eventually;

/// Below the ephemeral ports of Linux.
const PORTS: std::ops::Range<u16> = 15_000..30_000;
/// The zone with the addresses of the name servers.
const HOSTS: &str = "servers.test";

/// See the module.
#[derive(Debug)]
pub struct TestDns {
    network: [u8; 3],
    port: u16,
    last_host: AtomicU8,
    seed: NameServer,
    recursive: NameServer,
    domains: Arc<Domains>,
}

/// The servers of each domain.
#[derive(Debug, Default)]
pub(crate) struct Domains(Mutex<BTreeMap<Name, Vec<NameServer>>>);

impl Domains {
    /// The servers of the longest delegated domain that contains `name`.
    pub(crate) fn servers_of(&self, name: &Name) -> Vec<NameServer> {
        let domains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let above = domains.iter().filter(|(domain, _)| domain.zone_of(name));
        above
            .max_by_key(|(domain, _)| domain.num_labels())
            .map(|(_, servers)| servers.clone())
            .unwrap_or_default()
    }
}

impl TestDns {
    /// A DNS without delegated domains.
    ///
    /// # Panics
    /// Loopback has no free addresses.
    pub async fn start() -> Self {
        let domains = Arc::new(Domains::default());
        let (network, port, sockets) = eventually("loopback has a free port", async || {
            let network = [127, rand::random_range(1..=254), rand::random_range(1..=254)];
            let port = rand::random_range(PORTS);
            Some((network, port, Sockets::bind(at(network, 1, port), true).await.ok()?))
        })
        .await;
        let seed = NameServer::start("seed.test", sockets, ServerRole::Seed);
        let sockets = eventually("the next address is free", async || {
            Sockets::bind(at(network, 2, port), true).await.ok()
        })
        .await;
        let recursive =
            NameServer::start("resolver.test", sockets, ServerRole::Recursive(Arc::clone(&domains)));
        for apex in [".", "test", HOSTS] {
            seed.add_zone(apex).await;
        }
        Self { network, port, last_host: AtomicU8::new(2), seed, recursive, domains }
    }

    /// The seed: a resolver that knows the servers of each domain. It answers NXDOMAIN to all other queries,
    /// like a cache that queried too early.
    pub fn seed(&self) -> SocketAddr {
        self.seed.address()
    }

    /// The seed as a server, to inspect its queries and set faults.
    pub fn seed_server(&self) -> &NameServer {
        &self.seed
    }

    /// A recursive resolver for all domains, for mode `recursive`.
    pub fn recursive(&self) -> SocketAddr {
        self.recursive.address()
    }

    /// That resolver as a server, to inspect its queries and set faults.
    pub fn recursive_server(&self) -> &NameServer {
        &self.recursive
    }

    /// The port of every server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Settings that use this DNS.
    pub fn settings(&self, mode: DnsMode) -> Dns {
        let server = match mode {
            DnsMode::Authoritative => self.seed(),
            DnsMode::Recursive => self.recursive(),
        };
        Dns { mode, servers: vec![server], port: self.port, allow_private: true, ..Dns::default() }
    }

    /// A name server without zones.
    pub async fn server(&self) -> NameServer {
        let (host, sockets) = self.next_host(true).await;
        self.register(NameServer::start(&host, sockets, ServerRole::Authoritative)).await
    }

    /// A name server that refuses TCP connections.
    pub async fn server_without_tcp(&self) -> NameServer {
        let (host, sockets) = self.next_host(false).await;
        self.register(NameServer::start(&host, sockets, ServerRole::Authoritative)).await
    }

    /// A name server whose UDP replies are preceded by spoofed ones.
    pub async fn spoofed_server(&self, spoofed: SpoofedReply) -> NameServer {
        self.start_spoofed(spoofed, true).await
    }

    /// The same, and it refuses TCP connections.
    pub async fn spoofed_server_without_tcp(&self, spoofed: SpoofedReply) -> NameServer {
        self.start_spoofed(spoofed, false).await
    }

    async fn start_spoofed(&self, spoofed: SpoofedReply, tcp: bool) -> NameServer {
        let (host, sockets) = self.next_host(tcp).await;
        let sockets = spoofing::intercept(sockets, spoofed).await;
        self.register(NameServer::start(&host, sockets, ServerRole::Authoritative)).await
    }

    /// Delegates a domain, which has no records yet, to exactly these servers.
    pub async fn delegate(&self, domain: &str, servers: &[&NameServer]) {
        let apex = name(domain);
        let hosts = servers.iter().map(|server| RData::NS(NS(name(server.host())))).collect::<Vec<_>>();
        self.seed.add_zone(domain).await;
        self.seed.set(domain, RecordType::NS, hosts.clone()).await;
        for server in servers {
            server.add_zone(domain).await;
            server.set(domain, RecordType::NS, hosts.clone()).await;
        }
        let mut domains = self.domains.0.lock().unwrap_or_else(PoisonError::into_inner);
        domains.insert(apex, servers.iter().copied().cloned().collect());
    }

    /// Delegates a domain to `count` new servers.
    pub async fn domain(&self, domain: &str, count: usize) -> Vec<NameServer> {
        let mut servers = Vec::new();
        for _ in 0..count {
            servers.push(self.server().await);
        }
        self.delegate(domain, &servers.iter().collect::<Vec<_>>()).await;
        servers
    }

    /// Adds an address of a host, which need not have a server.
    pub async fn add_host(&self, host: &str, address: IpAddr) {
        self.seed.add_address(host, address).await;
    }

    /// Sets the TXT records at a name, at every server of its domain.
    pub async fn set_txt(&self, at: &str, texts: &[&str]) {
        for server in self.domains.servers_of(&name(at)) {
            server.set_txt(at, texts).await;
        }
    }

    /// Sets the MX records at a name, at every server of its domain.
    pub async fn set_mx(&self, at: &str, exchanges: &[(u16, &str)]) {
        for server in self.domains.servers_of(&name(at)) {
            server.set_mx(at, exchanges).await;
        }
    }

    /// Sets the addresses of a name, of both families, at every server of its domain.
    pub async fn set_addresses(&self, at: &str, addresses: &[IpAddr]) {
        let records = addresses.iter().copied().map(address_record);
        let (ipv6, ipv4): (Vec<_>, Vec<_>) = records.partition(|data| matches!(data, RData::AAAA(_)));
        for server in self.domains.servers_of(&name(at)) {
            server.set(at, RecordType::A, ipv4.clone()).await;
            server.set(at, RecordType::AAAA, ipv6.clone()).await;
        }
    }

    /// Sets a CNAME record at every server of its domain.
    pub async fn set_cname(&self, at: &str, target: &str) {
        for server in self.domains.servers_of(&name(at)) {
            server.set_cname(at, target).await;
        }
    }

    /// Removes all records at a name, at every server of its domain.
    pub async fn clear(&self, at: &str) {
        for server in self.domains.servers_of(&name(at)) {
            server.clear(at).await;
        }
    }

    /// Sets both records that verify a domain.
    pub async fn set_verified(&self, domain: &str, token: &str, mx_host: &str) {
        self.set_txt(&format!("_tempmail.{domain}"), &[&format!("tempmail-verify={token}")]).await;
        self.set_mx(domain, &[(10, mx_host)]).await;
    }

    async fn next_host(&self, tcp: bool) -> (String, Sockets) {
        let number = self.last_host.fetch_add(1, Ordering::Relaxed) + 1;
        let address = at(self.network, number, self.port);
        let sockets =
            eventually("the next address is free", async || Sockets::bind(address, tcp).await.ok()).await;
        (format!("ns{number}.{HOSTS}"), sockets)
    }

    async fn register(&self, server: NameServer) -> NameServer {
        self.add_host(server.host(), server.address().ip()).await;
        server
    }
}

impl NameServer {
    /// Sets the TXT records at a name, at this server alone.
    pub async fn set_txt(&self, at: &str, texts: &[&str]) {
        let records = texts.iter().map(|text| RData::TXT(TXT::new(vec![(*text).to_owned()])));
        self.set(at, RecordType::TXT, records.collect()).await;
    }

    /// Sets one TXT record of several character strings, at this server alone.
    pub async fn set_txt_in_pieces(&self, at: &str, pieces: &[&str]) {
        let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        self.set(at, RecordType::TXT, vec![RData::TXT(TXT::new(pieces))]).await;
    }

    /// Sets the MX records at a name, at this server alone.
    pub async fn set_mx(&self, at: &str, exchanges: &[(u16, &str)]) {
        let records = exchanges.iter().map(|(preference, host)| RData::MX(MX::new(*preference, name(host))));
        self.set(at, RecordType::MX, records.collect()).await;
    }

    /// Sets a CNAME record at this server alone.
    pub async fn set_cname(&self, at: &str, target: &str) {
        self.set(at, RecordType::CNAME, vec![RData::CNAME(CNAME(name(target)))]).await;
    }

    async fn add_address(&self, host: &str, address: IpAddr) {
        self.add(host, address_record(address)).await;
    }
}

fn address_record(address: IpAddr) -> RData {
    match address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(address.into()),
    }
}

fn at(network: [u8; 3], host: u8, port: u16) -> SocketAddr {
    let [a, b, c] = network;
    (Ipv4Addr::new(a, b, c, host), port).into()
}
