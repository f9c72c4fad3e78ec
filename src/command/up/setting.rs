//! The configuration of `up`: its own defaults below file and environment, flags above.

use std::net::{AddrParseError, IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use anyhow::Context as _;
use serde_json::{Value, json};
use tempmail_model::address::normalize_domain;
use tempmail_runtime::config::{Config, Sources};

use super::Options;

/// What `up` runs with.
pub struct Setting {
    /// Defaults of `up`, file, environment and flags together.
    pub config: Config,
    /// The system domains that were asked for, as A-labels.
    pub domains: Vec<String>,
    /// Whether file or environment give the keys.
    pub has_keys: bool,
}

impl Setting {
    /// Brings them together.
    pub fn read(options: &Options) -> anyhow::Result<Self> {
        let sources = Sources::read(options.config.as_deref())?;
        let mut config = sources.config(&defaults(), &flags(options))?;
        for address in [&mut config.http.listen, &mut config.smtp.listen, &mut config.admin.listen] {
            *address = with_port(*address)?;
        }
        if !sources.sets("http.base_url") {
            config.http.base_url = format!("http://{}", reachable(config.http.listen));
        }
        let domains = options.domains.iter().map(|domain| {
            normalize_domain(domain).with_context(|| format!("--domain {domain:?} is not a host name"))
        });
        let domains = domains.collect::<anyhow::Result<Vec<_>>>()?;
        let has_keys = sources.sets("jwt.keys") || sources.sets("secrets.keys");
        Ok(Self { config, domains, has_keys })
    }
}

fn defaults() -> Value {
    let loopback = json!(["127.0.0.0/8", "::1/128"]);
    json!({
        "http": {"listen": "127.0.0.1:8080", "unlimited_networks": loopback},
        "smtp": {"listen": "127.0.0.1:2525", "unlimited_networks": loopback},
        "admin": {"listen": "127.0.0.1:9090"},
        "telemetry": {"log": "warn"},
    })
}

fn flags(options: &Options) -> Value {
    let mut flags = json!({});
    for (group, address) in [("http", options.http), ("smtp", options.smtp), ("admin", options.admin)] {
        if let Some(address) = address {
            flags[group] = json!({"listen": address});
        }
    }
    if let Some(url) = &options.postgres_url {
        flags["postgres"] = json!({"url": url});
    }
    if let Some(url) = &options.redis_url {
        flags["redis"] = json!({"url": url});
    }
    if !options.dns_servers.is_empty() {
        flags["dns"] = json!({"mode": "recursive", "servers": options.dns_servers});
    }
    flags
}

/// The address of a DNS server, at port 53 unless it names another.
pub fn dns_server(text: &str) -> Result<SocketAddr, AddrParseError> {
    text.parse().or_else(|_| Ok((text.parse::<IpAddr>()?, 53).into()))
}

/// Port 0 becomes a free one, because links to the site must name it.
fn with_port(address: SocketAddr) -> anyhow::Result<SocketAddr> {
    if address.port() != 0 {
        return Ok(address);
    }
    let listener = TcpListener::bind(address).with_context(|| format!("can't listen on {address}"))?;
    Ok(listener.local_addr()?)
}

/// An address of this machine that leads to a listener on `address`.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { (Ipv4Addr::LOCALHOST, address.port()).into() } else { address }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use tempmail_runtime::config::DnsMode;

    use super::*;
    use crate::command::{Cli, Command};

    fn setting(flags: &[&str]) -> anyhow::Result<Setting> {
        let command = ["tempmail", "up"].iter().chain(flags);
        let Command::Up(options) = Cli::try_parse_from(command)?.command else { panic!("not `up`") };
        Setting::read(&options)
    }

    #[test]
    fn up_listens_on_loopback_unless_told() {
        let setting_ = setting(&[]).unwrap();
        assert_eq!(setting_.config.http.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(setting_.config.smtp.listen.to_string(), "127.0.0.1:2525");
        assert_eq!(setting_.config.admin.listen.to_string(), "127.0.0.1:9090");
        assert_eq!(setting_.config.http.base_url, "http://127.0.0.1:8080");
        assert!(setting_.domains.is_empty());
        let open = setting(&["--http", "0.0.0.0:81", "--domain", "Bücher.example", "--domain", "b.example"])
            .unwrap();
        assert_eq!(open.config.http.base_url, "http://127.0.0.1:81");
        assert_eq!(open.domains, ["xn--bcher-kva.example", "b.example"]);
        assert!(setting(&["--domain", "a b"]).is_err());
        assert!(setting(&["--dns-server", "ns.example"]).is_err());
        assert_ne!(setting(&["--smtp", "127.0.0.1:0"]).unwrap().config.smtp.listen.port(), 0);
    }

    #[test]
    fn a_dns_server_is_asked_instead_of_those_of_the_domains() {
        assert_eq!(setting(&[]).unwrap().config.dns.mode, DnsMode::Authoritative);
        let asked = setting(&["--dns-server", "192.0.2.53", "--dns-server", "[2001:db8::53]:5353"]).unwrap();
        assert_eq!(asked.config.dns.mode, DnsMode::Recursive);
        let servers: Vec<String> = asked.config.dns.servers.iter().map(SocketAddr::to_string).collect();
        assert_eq!(servers, ["192.0.2.53:53", "[2001:db8::53]:5353"]);
    }
}
