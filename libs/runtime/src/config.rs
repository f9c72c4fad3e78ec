//! The configuration: one YAML file, `TEMPMAIL_…` environment over it. `tempmail config`
//! prints the reference of all keys.

mod default;
mod environment;
mod load;
mod reference;
mod secret;
mod validate;

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tempmail_model::limits::Limits;
use tempmail_model::retention::RetentionClass;

pub use load::{ConfigError, Sources};
pub use reference::reference;
pub use secret::Secret;

/// Everything that can be set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Postgres, the only truth.
    pub postgres: Postgres,
    /// Redis, over which the processes share limits and wake each other.
    pub redis: Redis,
    /// The HTTP interface.
    pub http: Http,
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
    /// Which addresses nobody may have.
    pub addresses: Addresses,
    /// How the records of custom domains are looked for.
    pub dns: Dns,
    /// Where webhooks may go.
    pub webhooks: Webhooks,
    /// Background work.
    pub worker: Worker,
    /// Kubernetes resources.
    pub operator: Operator,
    /// Bounds.
    pub limits: Limits,
    /// Logs.
    pub telemetry: Telemetry,
}

/// `postgres.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Postgres {
    /// Connection URL.
    pub url: Secret,
    /// Connections a role holds at most.
    pub pool: u32,
}

/// `redis.*`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Redis {
    /// Connection URL; none where one process is all there is.
    pub url: Secret,
}

/// `http.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The site's own address as clients see it, without a trailing slash.
    pub base_url: String,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Further origins that browsers may call from.
    pub cors_origins: Vec<String>,
    /// Clients that limits by client do not apply to.
    pub unlimited_networks: Vec<IpNet>,
    /// Connections a client may hold.
    pub connections_per_client: usize,
    /// WebSockets a client may hold that are not authenticated.
    pub unauthenticated_sockets_per_client: usize,
    /// Connections in all.
    pub connections: usize,
    /// Streams of server-sent events in all.
    pub streams: usize,
    /// Seconds for request headers to arrive.
    pub header_seconds: u64,
    /// Seconds for a request body to arrive.
    pub body_seconds: u64,
}

/// `smtp.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Smtp {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Name in greeting and trace fields; also `mx_host`.
    pub hostname: String,
    /// Certificate and key for STARTTLS; without them it is not offered.
    pub tls: SmtpTls,
    /// Octets of a message (SIZE).
    pub max_message_bytes: usize,
    /// Recipients a mail transaction.
    pub max_recipients: usize,
    /// Connections a pod.
    pub connections: usize,
    /// Connections a peer (IPv6: /64).
    pub connections_per_peer: usize,
    /// Peers that limits by peer do not apply to.
    pub unlimited_networks: Vec<IpNet>,
    /// Seconds a client may be silent between commands.
    pub command_seconds: u64,
    /// Seconds between two blocks of message data.
    pub data_seconds: u64,
    /// Octets a second that message data must reach on average after 30 s.
    pub min_data_rate: u64,
    /// Refused commands before 421.
    pub max_errors: u32,
    /// Octets of message data in memory a pod.
    pub memory_bytes: usize,
    /// Octets of a header section.
    pub max_header_bytes: usize,
    /// Fields of a header section.
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
}

/// A list of keys; the first signs or encrypts, all of them verify or decrypt.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyRing {
    /// At least one; secrets of at least 32 octets, none equal to another.
    pub keys: Vec<Key>,
}

impl KeyRing {
    /// What the text of a file of keys says: a JSON or YAML list of `{kid, secret}`. `None` where it is
    /// something else.
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
    /// At least 32 octets.
    pub secret: Secret,
}

/// `retention.*`, in hours: 1, 6, 24, 72, 168 or 720.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Mail of free mailboxes and shared inboxes.
    pub free_hours: RetentionClass,
    /// Mail of a new Pro tenant.
    pub pro_hours: RetentionClass,
}

/// `addresses.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Addresses {
    /// Local parts that nobody may have on system domains.
    pub reserved: Vec<String>,
}

/// `dns.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dns {
    /// Whom the answer about a domain is taken from.
    pub mode: DnsMode,
    /// Resolvers that tell where a domain's name servers are, or, in [`DnsMode::Recursive`],
    /// that answer. None: those of the system.
    pub servers: Vec<SocketAddr>,
    /// Port of the domains' name servers.
    pub port: u16,
    /// Whether a domain's name servers may have addresses that are not public. The tenant
    /// chooses those servers, so this lets tenants have us ask inside our own network.
    pub allow_private: bool,
    /// Seconds between two checks of a pending domain.
    pub interval_seconds: u32,
    /// Hours that a domain may be pending.
    pub pending_hours: u16,
}

/// Whom the answer about a domain is taken from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DnsMode {
    /// The domain's own name servers, each asked directly: no cache stands between.
    #[default]
    Authoritative,
    /// Resolvers, whose word is taken: for networks that reach no other server.
    Recursive,
}

/// `webhooks.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Webhooks {
    /// Networks that deliveries may reach although they are not public.
    pub allowed_networks: Vec<IpNet>,
    /// Networks that deliveries never reach; these win.
    pub denied_networks: Vec<IpNet>,
    /// PEM file of certificate authorities that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Seconds for a whole delivery.
    pub timeout_seconds: u64,
}

/// `worker.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Worker {
    /// Whether the worker looks at the records of custom domains.
    pub verify_domains: bool,
}

/// `operator.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Operator {
    /// Name of the Lease whose holder leads, in the operator's own namespace.
    pub lease_name: String,
    /// Seconds after which another may lead if the holder is silent.
    pub lease_seconds: u64,
    /// Name of the Secret of the installation's keys, in the operator's own namespace; empty where
    /// the keys are configured.
    pub keys_secret: String,
}

/// `telemetry.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Log filter, as `tracing` reads it.
    pub log: String,
    /// `text` or `json`; by default text on a terminal, else json.
    pub format: Option<LogFormat>,
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
