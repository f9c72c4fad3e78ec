//! `tempmail up`: all roles in one process, over an embedded Postgres.

mod credentials;
mod installation;
mod settings;
mod sink;
mod welcome;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tempmail_embedded_postgres::{EmbeddedPostgres, Options as PostgresOptions};
use tempmail_runtime::admin::AdminServer;
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_runtime::{telemetry, traces};
use tempmail_store::{SchemaDefinition, Store};

use super::data_directory::DataDirectory;
use crate::process::open_files::{self, Server};
use crate::process::{clock_sync, connect_bus};
use crate::roles::{RoleContext, Roles};
pub(super) use credentials::{CREDENTIALS_FILE, Credentials};
use installation::Installation;
pub(crate) use settings::UpArgs;
use settings::UpSettings;

/// Time between two checks whether the roles are ready.
const READINESS_POLL: Duration = Duration::from_millis(10);

/// Runs all roles until a signal stops the process: the roles drain first, Postgres stops last.
pub(crate) async fn run(args: UpArgs, schema: &SchemaDefinition) -> anyhow::Result<()> {
    let mut settings = UpSettings::read(&args)?;
    if args.sink {
        sink::check_listeners(&settings.config, args.force)?;
    }
    telemetry::init(&settings.config)?;
    traces::start(&settings.config.telemetry, "up")?;
    open_files::limit_connections(&mut settings.config, &[Server::Http, Server::Smtp]);
    let shutdown = Shutdown::on_signals()?;
    let directory = DataDirectory::open(args.data_dir.as_deref())?;
    credentials::load_keys(&mut settings, &args, &directory)?;
    if args.starttls {
        sink::set_certificate(&mut settings.config.smtp, &directory)?;
    }

    let mut postgres = None;
    if settings.config.postgres.url.is_empty() {
        let started = shutdown.drain.run_until_cancelled(start_postgres(&args, &directory)).await;
        let Some(server) = started else { return Ok(()) };
        let server = server?;
        settings.config.postgres.url = server.connection_url("postgres").into();
        postgres = Some(server);
    }
    let ran = tokio::select! {
        ran = serve(settings, schema, &directory, shutdown.clone()) => ran,
        error = postgres_exited(postgres.as_mut()) => Err(error),
    };
    traces::finish().await;
    shutdown.stop.cancel();
    if let Some(server) = postgres {
        server.stop().await;
    }
    ran
}

async fn start_postgres(args: &UpArgs, directory: &DataDirectory) -> anyhow::Result<EmbeddedPostgres> {
    let options = PostgresOptions {
        downloads: directory.path().to_owned(),
        skip_installed: args.download_postgres,
        progress: welcome::print_progress,
        ..PostgresOptions::new(directory.path().join("postgres"))
    };
    Ok(EmbeddedPostgres::start(options).await?)
}

/// Returns when the embedded server exits by itself.
async fn postgres_exited(postgres: Option<&mut EmbeddedPostgres>) -> anyhow::Error {
    match postgres {
        None => std::future::pending().await,
        Some(server) => match server.wait().await {
            Ok(status) => anyhow::anyhow!("Postgres exited unexpectedly ({status})"),
            Err(error) => anyhow::Error::new(error).context("the Postgres process can't be watched"),
        },
    }
}

/// Prepares the database and runs the roles until they have drained.
async fn serve(
    settings: UpSettings,
    schema: &SchemaDefinition,
    directory: &DataDirectory,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut config = settings.config;
    let keys = Keys::from_config(&config).context("`jwt.keys` and `secrets.keys`")?;
    let prepare = async {
        let installation =
            installation::prepare_once_available(&config, schema, &settings.domains, directory).await?;
        if settings.sink {
            installation.store.make_sink(installation.tenant).await?;
            config.sink = Some(installation.tenant);
            tracing::warn!(
                "this is a sink: it accepts mail for every domain and any password, for tests only"
            );
        }
        let config = Arc::new(config);
        let admin =
            AdminServer::bind(&config.admin, installation.readiness.clone(), telemetry::metrics_handle()?)
                .await?
                .with_host_check(&config.http);
        let roles = bind_roles(&config, keys, &installation).await?;
        let (roles, sign_in_url) =
            credentials::with_sign_in_link(roles, &config, directory, &installation.credentials)?;
        anyhow::Ok((config, installation, admin, roles, sign_in_url))
    };
    let Some(prepared) = shutdown.drain.run_until_cancelled(prepare).await else { return Ok(()) };
    let (config, installation, admin, roles, sign_in_url) = prepared?;
    drop(settings.reserved_ports);
    let Installation { store, clock, readiness, domains, credentials, .. } = installation;
    let admin = tokio::spawn(admin.run(shutdown.clone()));
    let clock_sync = clock_sync::run(store, clock, readiness.clone(), shutdown.stop.clone());
    let clock_sync = tokio::spawn(clock_sync);
    let roles = tokio::spawn(roles.run(shutdown.clone()));
    let welcome = async {
        wait_until_ready(&readiness).await;
        welcome::print(&config, &domains, directory, &credentials, sign_in_url.as_deref())
    };
    if let Some(Err(error)) = shutdown.drain.run_until_cancelled(welcome).await {
        tracing::warn!("the welcome text could not be printed: {error}");
    }
    let ran = roles.await.context("a role panicked")?;
    shutdown.stop.cancel();
    clock_sync.await.context("the clock synchronization panicked")?;
    ran.and(admin.await.context("the admin server panicked")?)
}

/// All roles but the operator, bound before any of them runs, so that a port in use fails the start.
async fn bind_roles(config: &Arc<Config>, keys: Keys, installation: &Installation) -> anyhow::Result<Roles> {
    let Installation { clock, readiness, stream, .. } = installation;
    let connect = |name| Store::connect(config.postgres.url.expose(), config.postgres.pool, name);
    let context = RoleContext {
        config: config.clone(),
        bus: connect_bus(config, *stream).await?,
        clock: clock.clone(),
        readiness: readiness.clone(),
    };
    Roles::new(context)
        .with_ingest(connect("tempmail-ingest")?)
        .await?
        .with_api(connect("tempmail-api")?, keys.clone())
        .await?
        .with_worker(connect("tempmail-worker")?, &keys.secrets)
}

/// Returns when `/readyz` reports nothing as missing.
async fn wait_until_ready(readiness: &Readiness) {
    while !readiness.report().is_empty() {
        tokio::time::sleep(READINESS_POLL).await;
    }
}
