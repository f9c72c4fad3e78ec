//! The configuration of `up`: flags override the environment, then the file, then `up`'s own defaults.

use std::io::ErrorKind;
use std::net::{AddrParseError, IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use socket2::Socket;
use tempmail_model::address::normalize_domain;
use tempmail_runtime::config::{Compat, Config, Sources};
use tempmail_runtime::listener::bound_socket;

use super::sink;

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

/// Arguments of `up`; they override the settings of file and environment.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Directory for all data [default: ~/.local/share/tempmail, as root /var/lib/tempmail]
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) data_dir: Option<PathBuf>,
    /// Use this Postgres instead of an embedded one
    #[arg(long, value_name = "URL")]
    pub(super) postgres_url: Option<String>,
    /// Redis for several `up` over one Postgres: they share limits and notify each other of new mail
    #[arg(long, value_name = "URL")]
    pub(super) redis_url: Option<String>,
    /// Address of the HTTP interface [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) http: Option<SocketAddr>,
    /// Address of inbound SMTP [default: 127.0.0.1:2525]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) smtp: Option<SocketAddr>,
    /// Address of probes and metrics [default: 127.0.0.1:9090]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) admin: Option<SocketAddr>,
    /// System domain to create; may be repeated [default, if there is no system domain: inbox.localhost; with --sink: sink.example.com]
    #[arg(long = "domain", value_name = "DOMAIN")]
    pub(super) domains: Vec<String>,
    /// Query this DNS server for custom domains instead of their own name servers; may be repeated
    #[arg(long = "dns-server", value_name = "ADDRESS", value_parser = dns_server)]
    pub(super) dns_servers: Vec<SocketAddr>,
    /// Catch all mail, for tests: any recipient domain, any password, no reserved names
    #[arg(long)]
    pub(super) sink: bool,
    /// Offer STARTTLS with a certificate that signs itself, which the data directory keeps [default: only with a certificate of yours]
    #[arg(long, requires = "sink")]
    pub(super) starttls: bool,
    /// Let the sink listen on addresses that other machines reach
    #[arg(long, requires = "sink")]
    pub(super) force: bool,
    /// File with the keys of the installation, created if missing; share it between several `up`
    /// over one Postgres [default: keys.json in the data directory]
    #[arg(long, value_name = "FILE")]
    pub(super) keys: Option<PathBuf>,
    /// YAML file with settings; `TEMPMAIL_…` environment variables override it
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Download PostgreSQL even if it is installed
    #[arg(long, hide = true)]
    pub(super) download_postgres: bool,
}

/// The address of a DNS server; the port is 53 unless given.
fn dns_server(text: &str) -> Result<SocketAddr, AddrParseError> {
    text.parse().or_else(|_| Ok((text.parse::<IpAddr>()?, 53).into()))
}

/// A port of this process that nothing listens on yet, until this is dropped.
///
/// Its socket is bound and does not listen: the system neither gives the port to whoever asks for any nor uses it for
/// connections. A listener takes it by its number, because both sockets set `SO_REUSEADDR` (socket(7)).
pub(super) struct ReservedPort {
    /// The address with the port.
    pub(super) address: SocketAddr,
    _socket: Socket,
}

impl ReservedPort {
    /// Reserves a free port of the host of `any`, whose port is 0.
    ///
    /// # Errors
    /// The host is not this machine, or no port is free.
    pub(super) fn choose(any: SocketAddr) -> anyhow::Result<Self> {
        let reserve = || -> std::io::Result<Self> {
            let socket = bound_socket(any)?;
            let address = socket.local_addr()?.as_socket().ok_or(ErrorKind::AddrNotAvailable)?;
            Ok(Self { address, _socket: socket })
        };
        reserve().with_context(|| format!("can't listen on {any}"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use tempmail_runtime::config::DnsMode;
    use tempmail_runtime::listener::Listener;
    use tokio::net::{TcpSocket, TcpStream};

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

    #[tokio::test]
    async fn keeps_the_port_from_others_until_a_listener_names_it() {
        let reserved = ReservedPort::choose(([127, 0, 0, 1], 0).into()).unwrap();
        assert_ne!(reserved.address.port(), 0);

        let other = TcpSocket::new_v4().unwrap().bind(reserved.address);
        assert_eq!(other.unwrap_err().kind(), ErrorKind::AddrInUse);

        let listener = Listener::bind(reserved.address).unwrap();
        drop(reserved);
        TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    }
}
