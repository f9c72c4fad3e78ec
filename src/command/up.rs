//! `tempmail up`: all roles in one process over a Postgres of its own.

pub(super) mod data_directory;
mod installation;
mod keys;
mod roles;
mod setting;
mod welcome;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tempmail_embedded_postgres::{EmbeddedPostgres, Options as PostgresOptions};
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_runtime::telemetry;

use data_directory::DataDirectory;
use roles::Roles;
use setting::Setting;

use crate::open_files;

/// What `up` takes; settings of file and environment are below these.
#[derive(Debug, Args)]
pub struct Options {
    /// Where everything is kept [default: ~/.local/share/tempmail, as root /var/lib/tempmail]
    #[arg(long, value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
    /// Use this Postgres instead of one of its own
    #[arg(long, value_name = "URL")]
    postgres_url: Option<String>,
    /// Share limits with other `up` over the same Postgres, and wake their clients, over this Redis
    #[arg(long, value_name = "URL")]
    redis_url: Option<String>,
    /// Address of the HTTP interface [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Address of inbound SMTP [default: 127.0.0.1:2525]
    #[arg(long, value_name = "ADDRESS")]
    smtp: Option<SocketAddr>,
    /// Address of probes and metrics [default: 127.0.0.1:9090]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// A system domain; may be given several times [default, where there is none: inbox.localhost]
    #[arg(long = "domain", value_name = "DOMAIN")]
    domains: Vec<String>,
    /// Ask this DNS server about custom domains, instead of the domains' own name servers; may be
    /// given several times
    #[arg(long = "dns-server", value_name = "ADDRESS", value_parser = setting::dns_server)]
    dns_servers: Vec<SocketAddr>,
    /// Keys of the installation, made where the file is missing: for several `up` over one
    /// Postgres [default: keys.json in the data directory]
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Settings, YAML; `TEMPMAIL_…` environment variables go over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Download PostgreSQL even where one is installed
    #[arg(long, hide = true)]
    download_postgres: bool,
}

/// Runs everything until told to stop: the roles drain first, Postgres stops last.
pub async fn run(options: Options) -> anyhow::Result<()> {
    let mut setting = Setting::read(&options)?;
    telemetry::init(&setting.config.telemetry)?;
    open_files::bound_connections(&mut setting.config);
    let shutdown = Shutdown::on_signals()?;
    let directory = DataDirectory::open(options.data_dir.as_deref())?;
    keys::load(&mut setting, &options, &directory)?;

    let mut postgres = None;
    if setting.config.postgres.url.is_empty() {
        let started = shutdown.drain.run_until_cancelled(start_postgres(&options, &directory)).await;
        let Some(server) = started else { return Ok(()) };
        let server = server?;
        setting.config.postgres.url = server.connection_url("postgres").into();
        postgres = Some(server);
    }
    let ran = tokio::select! {
        ran = serve(setting, &directory, shutdown.clone()) => ran,
        why = ended(postgres.as_mut()) => Err(why),
    };
    shutdown.stop.cancel();
    if let Some(server) = postgres {
        server.stop().await;
    }
    ran
}

async fn start_postgres(options: &Options, directory: &DataDirectory) -> anyhow::Result<EmbeddedPostgres> {
    let server = PostgresOptions {
        downloads: directory.path().to_owned(),
        skip_installed: options.download_postgres,
        progress: welcome::progress,
        ..PostgresOptions::new(directory.path().join("postgres"))
    };
    Ok(EmbeddedPostgres::start(server).await?)
}

/// Returns when the embedded server ends by itself.
async fn ended(postgres: Option<&mut EmbeddedPostgres>) -> anyhow::Error {
    match postgres {
        None => std::future::pending().await,
        Some(server) => match server.wait().await {
            Ok(status) => anyhow::anyhow!("Postgres ended by itself ({status})"),
            Err(error) => anyhow::Error::new(error).context("Postgres can't be watched"),
        },
    }
}

/// From an empty or older database to drained roles.
async fn serve(setting: Setting, directory: &DataDirectory, shutdown: Shutdown) -> anyhow::Result<()> {
    let config = Arc::new(setting.config);
    let keys = Keys::from_config(&config).context("`jwt.keys` and `secrets.keys`")?;
    let prepare = async {
        let installation = installation::prepare(&config, &setting.domains, directory).await?;
        let roles = Roles::bind(&config, keys, &installation).await?;
        anyhow::Ok((installation, roles))
    };
    let Some(prepared) = shutdown.drain.run_until_cancelled(prepare).await else { return Ok(()) };
    let (installation, roles) = prepared?;
    let readiness = installation.readiness.clone();
    let running = tokio::spawn(roles.run(shutdown.clone()));
    let tell = async {
        readiness_reached(&readiness).await;
        welcome::print(&config, &installation.domains, directory, &installation.credentials)
    };
    if let Some(Err(error)) = shutdown.drain.run_until_cancelled(tell).await {
        tracing::warn!("what was started could not be printed: {error}");
    }
    running.await.context("a role panicked")?
}

/// Returns when nothing is missing any more.
async fn readiness_reached(readiness: &Readiness) {
    while !readiness.report().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
