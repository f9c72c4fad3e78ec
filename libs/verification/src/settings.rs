//! How DNS is asked.

use std::net::SocketAddr;

/// Whom the answer about a domain is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DnsMode {
    /// The domain's own name servers, each asked directly: no cache stands between.
    #[default]
    Authoritative,
    /// Resolvers, whose word is taken: for networks that reach no other server.
    Recursive,
}

/// `dns.*` of the configuration, as far as it concerns asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsSettings {
    /// Whom the answer is taken from.
    pub mode: DnsMode,
    /// Resolvers that tell where a domain's name servers are, or, in
    /// [`DnsMode::Recursive`], that answer. None: those of the system.
    pub servers: Vec<SocketAddr>,
    /// Port of the domains' name servers.
    pub port: u16,
    /// Whether a domain's name servers may have addresses that are not public. The tenant
    /// chooses those servers, so this lets tenants have us ask inside our own network.
    pub allow_private: bool,
}

impl Default for DnsSettings {
    fn default() -> Self {
        Self { mode: DnsMode::default(), servers: Vec::new(), port: 53, allow_private: false }
    }
}
