//! The settings, grouped as in the configuration file, and bounds that are none: nobody has a reason to change them but a
//! test, which does so with `TEMPMAIL_TUNING`.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tempmail_model::address::{AddressSyntax, ReservedLocalParts};
use tempmail_model::limits::Limits;
use tempmail_model::retention::RetentionClass;
use tempmail_model::role_prefix::RolePrefix;
use tempmail_model::surface::DropInSurface;
use uuid::Uuid;

use super::removed::RemovedSetting;
use super::secret::Secret;

/// All settings.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The database.
    pub postgres: Postgres,
    /// Redis, over which the processes share limits and announce new mail.
    pub redis: Redis,
    /// The HTTP interface.
    pub http: Http,
    /// The Model Context Protocol over HTTP.
    pub mcp: Mcp,
    /// Drop-in surfaces.
    pub compat: Compat,
    /// Inbound SMTP.
    pub smtp: Smtp,
    /// Probes and metrics.
    pub admin: Admin,
    /// Keys of mailbox JWTs.
    pub jwt: KeyRing,
    /// Keys that seal cursors and encrypt secrets at rest.
    pub secrets: KeyRing,
    /// How long mail is kept.
    pub retention: Retention,
    /// Reserved addresses.
    pub addresses: Addresses,
    /// Verification of custom domains.
    pub dns: Dns,
    /// Delivery to webhooks.
    pub webhooks: Webhooks,
    /// Background work.
    pub worker: Worker,
    /// Kubernetes resources.
    pub operator: Operator,
    /// Bounds.
    pub limits: Limits,
    /// Logs and traces.
    pub telemetry: Telemetry,
    /// The tenant whose sink this process is: it owns all mail that no mailbox and no custom domain does. Only
    /// `tempmail up --sink` sets it; it is no setting.
    #[serde(skip)]
    pub sink: Option<Uuid>,
    /// The removed settings that file or environment still set.
    #[serde(skip)]
    pub removed: Vec<RemovedSetting>,
}

impl Config {
    /// The reserved local parts of system domains (`addresses.reserved`); none in a sink.
    pub fn reserved_local_parts(&self) -> ReservedLocalParts {
        ReservedLocalParts::new(&self.addresses.reserved).with_sink(self.sink.is_some())
    }

    /// Which addresses can have mail: in a sink, all that SMTP can name.
    pub fn address_syntax(&self) -> AddressSyntax {
        if self.sink.is_some() { AddressSyntax::Caught } else { AddressSyntax::Hosted }
    }
}

/// `postgres.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Postgres {
    /// Connection URL.
    pub url: Secret,
    /// Maximum connections of a role.
    pub pool: u32,
    /// Begins the names of the group roles.
    pub role_prefix: RolePrefix,
}

/// `redis.*`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Redis {
    /// Connection URL; empty if a single process runs.
    pub url: Secret,
}

/// `http.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Public URL of the site, without a trailing slash.
    pub base_url: String,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Further origins that browsers may send requests from.
    pub cors_origins: Vec<String>,
    /// Whether `/` and `/dashboard` are the page.
    pub page: bool,
    /// Whether requests must name a known host: that of `base_url`, loopback, or one of `hosts`.
    pub check_host: bool,
    /// Further hosts that requests may name.
    pub hosts: Vec<String>,
    /// Networks of clients that are exempt from the limits per client.
    pub unlimited_networks: Vec<IpNet>,
    /// Maximum connections per client.
    pub connections_per_client: usize,
    /// Maximum WebSockets per client that are not authenticated yet.
    pub unauthenticated_sockets_per_client: usize,
    /// Maximum connections.
    pub connections: usize,
    /// Maximum streams of server-sent events.
    pub streams: usize,
    /// Seconds within which request headers must arrive.
    pub header_seconds: u64,
    /// Seconds within which a request body must arrive.
    pub body_seconds: u64,
    /// Minimum average bytes per second that a client reads of an answer that waits for it.
    pub min_drain_rate: u64,
}

/// `mcp.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// Whether `/mcp` is served.
    pub enabled: bool,
    /// Whether its tools may delete mail.
    pub allow_delete: bool,
}

/// `compat.*`: the interfaces of other services, for their clients.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Compat {
    /// API v1 of Mailpit.
    pub mailpit: DropIn,
    /// API v1 and v2 of MailHog.
    pub mailhog: DropIn,
    /// The API of Mailosaur.
    pub mailosaur: DropIn,
}

/// `compat.<name>.*`
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DropIn {
    /// Address to listen on; without one the surface is off.
    pub listen: Option<SocketAddr>,
}

impl Compat {
    /// The settings of a surface.
    pub fn of(&self, surface: DropInSurface) -> DropIn {
        match surface {
            DropInSurface::Mailpit => self.mailpit,
            DropInSurface::MailHog => self.mailhog,
            DropInSurface::Mailosaur => self.mailosaur,
        }
    }
}

/// `smtp.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Smtp {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Host name in the greeting and in trace fields; also `mx_host`.
    pub hostname: String,
    /// Certificate and key for STARTTLS, which is not offered without them.
    pub tls: SmtpTls,
    /// Maximum bytes of a message (SIZE).
    pub max_message_bytes: usize,
    /// Maximum recipients of a mail transaction.
    pub max_recipients: usize,
    /// Maximum connections of a process.
    pub connections: usize,
    /// Maximum connections per peer: an IPv4 address or a /64. A /56 may have twice as many, a /48 four times; the
    /// same holds for all limits per peer.
    pub connections_per_peer: usize,
    /// Seconds without progress after which a session may be ended for another one of its peer.
    pub idle_seconds: u64,
    /// Networks of peers that are exempt from the limits per peer.
    pub unlimited_networks: Vec<IpNet>,
    /// Networks of load balancers, whose connections begin with a header of the PROXY protocol.
    pub proxy_networks: Vec<IpNet>,
    /// Seconds that a client may stay silent between commands.
    pub command_seconds: u64,
    /// Seconds between two blocks of message data.
    pub data_seconds: u64,
    /// Minimum bytes per second of message data, checked after 30 s, then over `data_seconds`.
    pub min_data_rate: u64,
    /// Seconds from MAIL to the end of the message.
    pub transaction_seconds: u64,
    /// Seconds of a session; its last transaction may take `transaction_seconds` more.
    pub session_seconds: u64,
    /// Rejected commands after which the session is closed with 421.
    pub max_errors: u32,
    /// Unknown recipients a minute that are rejected to a peer at once.
    pub unknown_recipients_per_minute: u32,
    /// Maximum messages a minute to a tenant.
    pub tenant_messages_per_minute: u64,
    /// Maximum messages a minute from a peer to a tenant.
    pub tenant_messages_per_minute_per_peer: u64,
    /// Maximum messages a minute to an address.
    pub address_messages_per_minute: u64,
    /// Maximum messages a minute from a peer to an address.
    pub address_messages_per_minute_per_peer: u64,
    /// Maximum bytes of message data in memory of a process.
    pub memory_bytes: usize,
    /// Maximum bytes of message data in memory from a peer.
    pub memory_bytes_per_peer: usize,
    /// Maximum bytes of message data in memory to a tenant.
    pub memory_bytes_per_tenant: usize,
    /// Maximum bytes of a header section.
    pub max_header_bytes: usize,
    /// Maximum fields of a header section.
    pub max_header_fields: usize,
}

/// `smtp.tls.*`: PEM files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SmtpTls {
    /// Certificate chain.
    pub cert: Option<PathBuf>,
    /// Private key.
    pub key: Option<PathBuf>,
}

/// `admin.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// Address of `/livez`, `/readyz` and `/metrics`.
    pub listen: SocketAddr,
    /// Maximum connections.
    pub connections: usize,
    /// Seconds within which a connection must be served.
    pub request_seconds: u64,
}

/// A list of keys; the first signs or encrypts, all of them verify or decrypt.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyRing {
    /// At least one; secrets have at least 32 bytes, and no two are equal.
    pub keys: Vec<Key>,
}

impl KeyRing {
    /// Parses a file of keys, a JSON or YAML list of `{kid, secret}`. `None` if the text is something
    /// else.
    pub fn parse(text: &str) -> Option<Self> {
        serde_saphyr::from_str(text).ok().map(|keys| Self { keys })
    }
}

/// One key of a ring.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Its name.
    pub kid: String,
    /// At least 32 bytes.
    pub secret: Secret,
}

/// `retention.*`, in hours: 1, 6, 24, 72, 168 or 720.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Retention of mail of free mailboxes and shared inboxes.
    pub free_hours: RetentionClass,
    /// Default retention of a new Pro tenant.
    pub pro_hours: RetentionClass,
}

/// `addresses.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Addresses {
    /// Local parts that can't be used on system domains.
    pub reserved: Vec<String>,
}

/// `dns.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dns {
    /// Which servers answer for a domain.
    pub mode: DnsMode,
    /// Resolvers that find a domain's name servers or, with [`DnsMode::Recursive`], answer
    /// themselves. Empty: those of the system.
    pub servers: Vec<SocketAddr>,
    /// Port of the name servers of domains.
    pub port: u16,
    /// Whether a domain's name servers may have private addresses. Tenants choose these servers, so
    /// this lets them send queries into our own network.
    pub allow_private: bool,
    /// Seconds between two checks of a pending domain.
    pub interval_seconds: u32,
    /// Hours after which verification of a pending domain fails.
    pub pending_hours: u16,
}

/// Which servers answer for a domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DnsMode {
    /// The domain's own name servers, queried directly, so that no cache is involved.
    #[default]
    Authoritative,
    /// Resolvers: for networks that reach no other server.
    Recursive,
}

/// `webhooks.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Webhooks {
    /// Networks that deliveries may reach although they are not public.
    pub allowed_networks: Vec<IpNet>,
    /// Networks that deliveries never reach; they take precedence over `allowed_networks`.
    pub denied_networks: Vec<IpNet>,
    /// PEM file of certificate authorities that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Maximum seconds of a delivery.
    pub timeout_seconds: u64,
}

/// `worker.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Worker {
    /// Whether the worker verifies custom domains.
    pub verify_domains: bool,
}

/// `operator.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Operator {
    /// Name of the Lease that elects the leader, in the operator's own namespace.
    pub lease_name: String,
    /// Seconds after which another operator may take over a silent leader's lease.
    pub lease_seconds: u64,
    /// Name of the Secret with the installation's keys, in the operator's own namespace; empty if the
    /// keys are configured.
    pub keys_secret: String,
    /// The namespaces whose objects are reconciled; empty: those of the whole cluster.
    pub watch_namespaces: Vec<String>,
    /// Seconds within which each Secret of an object is looked at, for a loss or a change.
    pub secret_check_seconds: u64,
    /// Name of the operator's pod, which the Lease shows as its holder; empty for a random name.
    pub pod_name: String,
}

/// `telemetry.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Log filter in the syntax of `tracing`.
    pub log: String,
    /// By default text on a terminal, else JSON.
    pub format: Option<LogFormat>,
    /// URL of the collector that gets spans over OTLP/HTTP, without `/v1/traces`. `None`: no traces.
    pub otlp_endpoint: Option<String>,
    /// One message in this many is traced.
    pub trace_one_in: u32,
}

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human-readable lines.
    Text,
    /// One JSON object per line.
    Json,
}
