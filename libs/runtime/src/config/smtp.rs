//! Inbound SMTP: `smtp.*`.

#![expect(missing_docs, reason = "`SETTINGS` describes each field that is a setting")]

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::Config;
use super::setting::{
    Bound, Kind, PEM_FILE, Setting, address, bound, bytes, count, networks, number, setting,
};
use super::validate::{any_text, is_host_name, is_network_of_proxies};

/// `smtp.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smtp {
    pub listen: SocketAddr,
    pub hostname: String,
    pub tls: SmtpTls,
    pub max_message_bytes: usize,
    pub max_recipients: usize,
    pub connections: usize,
    pub connections_per_peer: usize,
    /// Seconds without progress after which a session may be ended for another one of its peer.
    pub idle_seconds: u64,
    pub unlimited_networks: Vec<IpNet>,
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
    pub unknown_recipients_per_minute: u32,
    pub tenant_messages_per_minute: u64,
    pub tenant_messages_per_minute_per_peer: u64,
    pub address_messages_per_minute: u64,
    pub address_messages_per_minute_per_peer: u64,
    pub memory_bytes: usize,
    pub memory_bytes_per_peer: usize,
    pub memory_bytes_per_tenant: usize,
    /// Maximum bytes of a header section.
    pub max_header_bytes: usize,
    /// Maximum fields of a header section.
    pub max_header_fields: usize,
}

impl Smtp {
    pub(super) const SETTINGS: &[Setting] = &[
        address("smtp.listen", Some("[::]:2525"), "Address of the SMTP server."),
        setting(
            "smtp.hostname",
            Kind::Text { default: Some("localhost"), is_valid: is_host_name },
            "a host name, such as mx.example.com",
            "Host name in the greeting and in trace fields; also `mx_host`, which MX records of custom domains must name.",
        ),
        setting(
            "smtp.tls.cert",
            Kind::Text { default: None, is_valid: any_text },
            PEM_FILE,
            "PEM file of the certificate chain, read again within a minute when it is renewed. STARTTLS is offered if certificate and key are set.",
        ),
        setting(
            "smtp.tls.key",
            Kind::Text { default: None, is_valid: any_text },
            PEM_FILE,
            "PEM file of the private key.",
        ),
        number(
            "smtp.max_message_bytes",
            26_214_400,
            1 << 30,
            "a whole number of bytes from 1 to 1073741824 (1 GiB)",
            "Maximum bytes of a message (SIZE).",
        ),
        number(
            "smtp.max_recipients",
            100,
            1_000,
            "a whole number from 1 to 1000",
            "Maximum recipients of a mail transaction.",
        ),
        count("smtp.connections", 10_000, "Maximum connections of a process."),
        count(
            "smtp.connections_per_peer",
            100,
            "Maximum connections per peer: an IPv4 address or a /64 of IPv6. A /56 may have twice as many and a /48 four times; the same holds for all limits per peer.",
        ),
        networks("smtp.unlimited_networks", "Networks of peers that are exempt from the limits per peer."),
        setting(
            "smtp.proxy_networks",
            Kind::List { default: &[], is_valid: is_network_of_proxies },
            "a list of networks of load balancers, not of all addresses, such as 10.0.0.0/8",
            "Networks of load balancers: their connections must begin with a header of the PROXY protocol, version 1 or 2.",
        ),
        count(
            "smtp.unknown_recipients_per_minute",
            60,
            "Unknown recipients a minute that are rejected to a peer at once; further rejections are delayed.",
        ),
        count(
            "smtp.tenant_messages_per_minute",
            240_000,
            "Maximum messages a minute to a tenant, in each process. All mail without a tenant counts as that of one.",
        ),
        count(
            "smtp.tenant_messages_per_minute_per_peer",
            60_000,
            "Maximum messages a minute from a peer to a tenant, in each process.",
        ),
        count(
            "smtp.address_messages_per_minute",
            24_000,
            "Maximum messages a minute to an address, in each process.",
        ),
        count(
            "smtp.address_messages_per_minute_per_peer",
            6_000,
            "Maximum messages a minute from a peer to an address, in each process.",
        ),
        bytes(
            "smtp.memory_bytes",
            512 << 20,
            "Maximum bytes of message data in memory of a process; beyond it mail is deferred.",
        ),
        bytes(
            "smtp.memory_bytes_per_peer",
            128 << 20,
            "Maximum bytes of message data in memory from a peer; at least `smtp.max_message_bytes`.",
        ),
        bytes(
            "smtp.memory_bytes_per_tenant",
            256 << 20,
            "Maximum bytes of message data in memory to a tenant; at least `smtp.max_message_bytes`. All mail without a tenant counts as that of one.",
        ),
    ];
    pub(super) const BOUNDS: &[Bound] = &[
        bound("smtp.idle_seconds", 5),
        bound("smtp.command_seconds", 60),
        bound("smtp.data_seconds", 180),
        bound("smtp.min_data_rate", 1_024),
        bound("smtp.transaction_seconds", 1_800),
        bound("smtp.session_seconds", 3_600),
        bound("smtp.max_errors", 20),
        bound("smtp.max_header_bytes", 256 << 10),
        bound("smtp.max_header_fields", 1_000),
    ];
}

impl Default for Smtp {
    fn default() -> Self {
        Config::default().smtp
    }
}

/// `smtp.tls.*`: PEM files.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtpTls {
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}
