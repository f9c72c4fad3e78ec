//! What is served over HTTP: `http.*`, `mcp.*` and `compat.*`.

#![expect(missing_docs, reason = "`SETTINGS` describes each field that is a setting")]

use std::net::SocketAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tempmail_model::surface::DropInSurface;

use super::Config;
use super::setting::{Bound, Kind, Setting, address, bound, count, networks, setting, switch};
use super::validate::{is_host, is_origin};

/// `http.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    pub listen: SocketAddr,
    pub base_url: String,
    pub trusted_proxies: Vec<IpNet>,
    pub cors_origins: Vec<String>,
    pub page: bool,
    pub check_host: bool,
    pub hosts: Vec<String>,
    pub unlimited_networks: Vec<IpNet>,
    pub connections_per_client: usize,
    /// Maximum WebSockets per client that are not authenticated yet.
    pub unauthenticated_sockets_per_client: usize,
    pub connections: usize,
    pub streams: usize,
    /// Seconds within which request headers must arrive.
    pub header_seconds: u64,
    /// Seconds within which a request body must arrive.
    pub body_seconds: u64,
    /// Minimum average bytes per second that a client reads of an answer that waits for it.
    pub min_drain_rate: u64,
}

impl Http {
    pub(super) const SETTINGS: &[Setting] = &[
        address("http.listen", Some("[::]:8080"), "Address of the HTTP interface."),
        setting(
            "http.base_url",
            Kind::Text { default: Some("http://localhost:8080"), is_valid: is_origin },
            "an origin, such as https://mail.example.com",
            "Public URL of the site.",
        ),
        networks("http.trusted_proxies", "Proxies whose `X-Forwarded-For` is trusted."),
        setting(
            "http.cors_origins",
            Kind::List { default: &[], is_valid: is_origin },
            "a list of origins, such as https://app.example.com",
            "Further origins that browsers may send requests from.",
        ),
        switch(
            "http.page",
            true,
            "Whether `/` shows the web page and `/dashboard` the dashboard; without it they are `404`.",
        ),
        switch(
            "http.check_host",
            false,
            "Whether requests must name a known host: that of `http.base_url`, loopback, or one of `http.hosts`; others are `421`, by `api` and the admin port of `up`. On in `up`, so that no page of another site reaches it by a name that it makes resolve to loopback.",
        ),
        setting(
            "http.hosts",
            Kind::List { default: &[], is_valid: is_host },
            "a list of hosts without port, such as mail.example.com",
            "Further hosts that requests may name, where `http.check_host` is on.",
        ),
        networks(
            "http.unlimited_networks",
            "Networks of clients that are exempt from the limits per client.",
        ),
        count(
            "http.connections_per_client",
            200,
            "Maximum connections per client: an IPv4 address or a /64 of IPv6. A /56 may have twice as many and a /48 four times; one beyond that is closed at once.",
        ),
        count(
            "http.connections",
            20_000,
            "Maximum connections of a process; fewer if its limit of open files is lower.",
        ),
        count("http.streams", 15_000, "Maximum streams of server-sent events of a process."),
    ];
    pub(super) const BOUNDS: &[Bound] = &[
        bound("http.unauthenticated_sockets_per_client", 20),
        bound("http.header_seconds", 10),
        bound("http.body_seconds", 30),
        bound("http.min_drain_rate", 4_096),
    ];
}

impl Default for Http {
    fn default() -> Self {
        Config::default().http
    }
}

/// `mcp.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    pub enabled: bool,
    pub allow_delete: bool,
}

impl Mcp {
    pub(super) const SETTINGS: &[Setting] = &[
        switch("mcp.enabled", true, "Whether `api` serves the [Model Context Protocol](mcp.md) at `/mcp`."),
        switch(
            "mcp.allow_delete",
            false,
            "Whether tools of `/mcp` may delete mail: a language model may call them, whatever it was told to do.",
        ),
    ];
}

/// `compat.*`: the interfaces of other services, for their clients.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compat {
    /// API v1 of Mailpit.
    pub mailpit: DropIn,
    /// API v1 and v2 of MailHog.
    pub mailhog: DropIn,
    /// The API of Mailosaur.
    pub mailosaur: DropIn,
}

impl Compat {
    pub(super) const SETTINGS: &[Setting] = &[
        address(
            "compat.mailpit.listen",
            None,
            "Address of the [API v1 of Mailpit](compat/mailpit.md); without one it is off.",
        ),
        address(
            "compat.mailhog.listen",
            None,
            "Address of the [API v1 and v2 of MailHog](compat/mailhog.md); without one it is off.",
        ),
        address(
            "compat.mailosaur.listen",
            None,
            "Address of the [API of Mailosaur](compat/mailosaur.md); without one it is off.",
        ),
    ];
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

/// `compat.<name>.*`
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropIn {
    pub listen: Option<SocketAddr>,
}
