//! The configuration of `up`: flags override the environment, then the file, then `up`'s own defaults.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use serde_json::{Value, json};
use tempmail_model::address::normalize_domain;
use tempmail_runtime::config::{Compat, Config, Sources};

use super::reserved_port::ReservedPort;
use super::sink;
use super::up_args::UpArgs;

/// The settings of `up`, from all sources.
pub(super) struct UpSettings {
    /// The merged configuration.
    pub(super) config: Config,
    /// The requested system domains, as A-labels.
    pub(super) domains: Vec<String>,
    /// Whether file or environment set the keys.
    pub(super) has_keys: bool,
    /// Whether all mail is caught.
    pub(super) sink: bool,
    /// The ports that were 0, to be kept until the roles listen.
    pub(super) reserved_ports: Vec<ReservedPort>,
}

impl UpSettings {
    /// Merges all sources and picks free ports where the port is 0.
    ///
    /// # Errors
    /// A setting is invalid, or an address can't be bound.
    pub(super) fn read(args: &UpArgs) -> anyhow::Result<Self> {
        let sources = Sources::read(args.config.as_deref())?;
        let mut config = sources.config(&defaults(), &flags(args))?;
        let reserved_ports = choose_ports(&mut config)?;
        if !sources.sets("http.base_url") {
            config.http.base_url = format!("http://{}", reachable(config.http.listen));
        }
        let domains = args.domains.iter().map(|domain| {
            normalize_domain(domain).with_context(|| format!("--domain {domain:?} is not a host name"))
        });
        let mut domains = domains.collect::<anyhow::Result<Vec<_>>>()?;
        if args.sink && domains.is_empty() {
            domains.push(sink::DOMAIN.to_owned());
        }
        let has_keys = sources.sets("jwt.keys") || sources.sets("secrets.keys");
        Ok(Self { config, domains, has_keys, sink: args.sink, reserved_ports })
    }
}

fn defaults() -> Value {
    let loopback = json!(["127.0.0.0/8", "::1/128"]);
    json!({
        "http": {"listen": "127.0.0.1:8080", "unlimited_networks": loopback, "check_host": true},
        "smtp": {"listen": "127.0.0.1:2525", "unlimited_networks": loopback},
        "admin": {"listen": "127.0.0.1:9090"},
        "telemetry": {"log": "warn"},
    })
}

fn flags(args: &UpArgs) -> Value {
    let mut flags = json!({});
    for (group, address) in [("http", args.http), ("smtp", args.smtp), ("admin", args.admin)] {
        if let Some(address) = address {
            flags[group] = json!({"listen": address});
        }
    }
    if let Some(url) = &args.postgres_url {
        flags["postgres"] = json!({"url": url});
    }
    if let Some(url) = &args.redis_url {
        flags["redis"] = json!({"url": url});
    }
    if !args.dns_servers.is_empty() {
        flags["dns"] = json!({"mode": "recursive", "servers": args.dns_servers});
    }
    flags
}

/// Replaces each port 0 by a free port, because links to the site must name the port.
fn choose_ports(config: &mut Config) -> anyhow::Result<Vec<ReservedPort>> {
    let Compat { mailpit, mailhog, mailosaur } = &mut config.compat;
    let surfaces = [mailpit, mailhog, mailosaur].into_iter().filter_map(|it| it.listen.as_mut());
    [&mut config.http.listen, &mut config.smtp.listen, &mut config.admin.listen]
        .into_iter()
        .chain(surfaces)
        .filter(|address| address.port() == 0)
        .map(|address| {
            let reserved = ReservedPort::choose(*address)?;
            *address = reserved.address;
            Ok(reserved)
        })
        .collect()
}

/// An address at which this machine reaches a listener on `address`.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { (Ipv4Addr::LOCALHOST, address.port()).into() } else { address }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use tempmail_runtime::config::DnsMode;

    use super::*;
    use crate::command::{Cli, Command};

    fn settings(flags: &[&str]) -> anyhow::Result<UpSettings> {
        let command = ["tempmail", "up"].iter().chain(flags);
        let Command::Up(args) = Cli::try_parse_from(command)?.command else { panic!("not `up`") };
        UpSettings::read(&args)
    }

    #[test]
    fn listens_on_loopback_by_default() {
        let default = settings(&[]).unwrap();
        assert_eq!(default.config.http.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(default.config.smtp.listen.to_string(), "127.0.0.1:2525");
        assert_eq!(default.config.admin.listen.to_string(), "127.0.0.1:9090");
        assert_eq!(default.config.http.base_url, "http://127.0.0.1:8080");
        assert!(default.domains.is_empty());
    }

    #[test]
    fn flags_override_the_defaults() {
        let open = settings(&["--http", "0.0.0.0:81", "--domain", "Bücher.example", "--domain", "b.example"])
            .unwrap();
        assert_eq!(open.config.http.base_url, "http://127.0.0.1:81");
        assert_eq!(open.domains, ["xn--bcher-kva.example", "b.example"]);
        assert_ne!(settings(&["--smtp", "127.0.0.1:0"]).unwrap().config.smtp.listen.port(), 0);
        assert!(settings(&["--domain", "a b"]).is_err());
        assert!(settings(&["--dns-server", "ns.example"]).is_err());
    }

    #[test]
    fn dns_server_replaces_the_name_servers_of_custom_domains() {
        assert_eq!(settings(&[]).unwrap().config.dns.mode, DnsMode::Authoritative);
        let with_servers =
            settings(&["--dns-server", "192.0.2.53", "--dns-server", "[2001:db8::53]:5353"]).unwrap();
        assert_eq!(with_servers.config.dns.mode, DnsMode::Recursive);
        let servers: Vec<String> =
            with_servers.config.dns.servers.iter().map(SocketAddr::to_string).collect();
        assert_eq!(servers, ["192.0.2.53:53", "[2001:db8::53]:5353"]);
    }
}
