//! The roles worker and operator: `dns.*`, `webhooks.*`, `worker.*` and `operator.*`.

#![expect(missing_docs, reason = "`SETTINGS` describes each field that is a setting")]

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::Config;
use super::setting::{
    Bound, Kind, PEM_FILE, SECONDS, SECONDS_MAX, Setting, bound, count, networks, seconds, setting, switch,
};
use super::validate::{any_text, is_namespace, is_object_name, is_object_name_or_empty};

/// `dns.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dns {
    pub mode: DnsMode,
    pub servers: Vec<SocketAddr>,
    pub port: u16,
    pub allow_private: bool,
    /// Seconds between two checks of a pending domain.
    pub interval_seconds: u32,
    /// Hours after which verification of a pending domain fails.
    pub pending_hours: u16,
}

impl Dns {
    pub(super) const SETTINGS: &[Setting] = &[
        setting(
            "dns.mode",
            Kind::Text { default: Some("authoritative"), is_valid: any_text },
            "authoritative or recursive",
            "Which servers answer for a custom domain. `authoritative`: the domain's own name servers, queried directly. `recursive`: the resolvers of `dns.servers`, for networks that reach no other server.",
        ),
        setting(
            "dns.servers",
            Kind::List { default: &[], is_valid: any_text },
            "a list of IP addresses with port, such as 192.0.2.53:53",
            "Resolvers that find a domain's name servers (`authoritative`) or answer themselves (`recursive`). By default those of the system.",
        ),
        count("dns.port", 53, "Port of the name servers of domains."),
        switch(
            "dns.allow_private",
            false,
            "Whether a domain's name servers may have private addresses. Tenants choose these servers, so this lets them send queries into your network.",
        ),
    ];
    pub(super) const BOUNDS: &[Bound] = &[bound("dns.interval_seconds", 300), bound("dns.pending_hours", 72)];
}

impl Default for Dns {
    fn default() -> Self {
        Config::default().dns
    }
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
#[serde(deny_unknown_fields)]
pub struct Webhooks {
    pub allowed_networks: Vec<IpNet>,
    pub denied_networks: Vec<IpNet>,
    pub ca_file: Option<PathBuf>,
    pub timeout_seconds: u64,
}

impl Webhooks {
    pub(super) const SETTINGS: &[Setting] = &[
        networks(
            "webhooks.allowed_networks",
            "Networks that webhook deliveries may reach although they are not public. With any, a webhook's URL may have every host name and port.",
        ),
        networks(
            "webhooks.denied_networks",
            "Networks that webhook deliveries never reach; takes precedence over `webhooks.allowed_networks`.",
        ),
        setting(
            "webhooks.ca_file",
            Kind::Text { default: None, is_valid: any_text },
            PEM_FILE,
            "Certificate authorities that are trusted for webhook deliveries, in addition to the system's, and self-signed certificates of receivers (PEM); read again within a minute when they are renewed.",
        ),
        seconds("webhooks.timeout_seconds", 30, "Maximum seconds of a webhook delivery."),
    ];
}

/// `worker.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    pub verify_domains: bool,
}

impl Worker {
    pub(super) const SETTINGS: &[Setting] = &[switch(
        "worker.verify_domains",
        true,
        "Whether the worker verifies custom domains. Several processes may do so.",
    )];
}

/// `operator.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operator {
    pub lease_name: String,
    /// Seconds after which another operator may take over a silent leader's lease.
    pub lease_seconds: u64,
    pub keys_secret: String,
    pub watch_namespaces: Vec<String>,
    pub secret_check_seconds: u64,
    pub pod_name: String,
}

impl Operator {
    pub(super) const SETTINGS: &[Setting] = &[
        setting(
            "operator.lease_name",
            Kind::Text { default: Some("tempmail-operator"), is_valid: is_object_name },
            "a Kubernetes object name, such as tempmail-operator",
            "Lease that elects the leading operator, in the operators' own namespace.",
        ),
        setting(
            "operator.keys_secret",
            Kind::Text { default: Some(""), is_valid: is_object_name_or_empty },
            "a Kubernetes object name, or empty",
            "Secret with the installation's keys, in the operator's own namespace. The operator creates it if it is missing, and never changes it. Its entries `jwt.yaml` and `secrets.yaml` are the files for `TEMPMAIL_JWT__KEYS_FILE` and `TEMPMAIL_SECRETS__KEYS_FILE` of the other roles; the operator itself needs no `secrets.keys` then.",
        ),
        setting(
            "operator.watch_namespaces",
            Kind::List { default: &[], is_valid: is_namespace },
            "a list of namespaces, each once",
            "Namespaces whose CustomDomains, Webhooks, ApiTokens and Mailboxes are reconciled, so that the operator needs rights on Secrets in these alone. By default those of the whole cluster. Tenants and SystemDomains are in no namespace, and reconciled in any case.",
        ),
        setting(
            "operator.secret_check_seconds",
            Kind::Number { default: 300, min: 5, max: SECONDS_MAX },
            SECONDS,
            "Seconds within which the operator looks at each Secret of a Webhook, ApiToken or Mailbox, for a loss or a change: a request to the API server each; at least 5.",
        ),
        setting(
            "operator.pod_name",
            Kind::Text { default: Some(""), is_valid: is_object_name_or_empty },
            "a Kubernetes object name, or empty",
            "Name of the operator's pod, which the Lease shows as its holder; if it is empty, the holder is a random name. The chart sets it.",
        ),
    ];
    pub(super) const BOUNDS: &[Bound] = &[bound("operator.lease_seconds", 15)];
}
