//! The arguments of `tempmail up`.

use std::net::{AddrParseError, IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

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
