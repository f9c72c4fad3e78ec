//! tempmail in this process, over an embedded Postgres with the settings of `tempmail up`, and with a
//! clock that can be moved, which the binary does not have.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tempmail::roles::{RoleContext, Roles};
use tempmail_bus::LocalBus;
use tempmail_embedded_postgres::{EmbeddedPostgres, Options};
use tempmail_model::clock::{Clock, TestClock};
use tempmail_model::retention::RetentionClass;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::{NewToken, Store, TenantLimits};
use tempmail_tests::app::random_key;
use tempmail_tests::postgres::migrate;
use tempmail_worker::Worker;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::server::cpu;

/// The system domain of all stacks.
pub const DOMAIN: &str = "inbox.localhost";

/// An embedded Postgres with durable commits.
#[derive(Debug)]
pub struct BenchPostgres {
    server: EmbeddedPostgres,
}

impl BenchPostgres {
    /// Starts a new one under `directory`.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(directory: &Path) -> anyhow::Result<Self> {
        let options = Options { progress: |_| (), ..Options::new(directory.join("postgres")) };
        Ok(Self { server: EmbeddedPostgres::start(options).await? })
    }

    /// Creates an empty database and returns its URL.
    ///
    /// # Errors
    /// The name is in use, or Postgres does not answer.
    pub async fn create_database(&self, name: &str) -> anyhow::Result<String> {
        self.administer(format!("CREATE DATABASE {name}")).await?;
        Ok(self.server.connection_url(name))
    }

    /// Drops a database and its connections.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn drop_database(&self, name: &str) -> anyhow::Result<()> {
        self.administer(format!("DROP DATABASE {name} WITH (FORCE)")).await
    }

    /// Processor time that Postgres used so far, all its processes.
    pub fn cpu(&self) -> Duration {
        cpu::of_tree(self.server.pid())
    }

    async fn administer(&self, statement: String) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect(&self.server.connection_url("postgres")).await?;
        connection.execute(AssertSqlSafe(statement)).await?;
        Ok(connection.close().await?)
    }

    /// Stops it.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

/// Ingest and API server over one database. The worker only runs by [`Stack::run_worker_once`].
pub struct Stack {
    /// The settings, fresh keys among them.
    pub config: Arc<Config>,
    /// The tenant of all tokens; its mail is kept for 72 h.
    pub tenant: Uuid,
    /// SMTP listener.
    pub smtp: SocketAddr,
    /// HTTP listener.
    pub http: SocketAddr,
    /// A `tm_live_` token.
    pub token: String,
    /// Business time of all roles.
    pub clock: TestClock,
    /// The database.
    pub store: Store,
    worker: Worker,
    shutdown: Shutdown,
    running: AbortOnDropHandle<anyhow::Result<()>>,
}

impl Stack {
    /// Brings the schema up in the database at `url` and starts the roles.
    ///
    /// # Errors
    /// One of them does not start.
    pub async fn start(url: &str) -> anyhow::Result<Self> {
        let config = Arc::new(config()?);
        let store = Store::connect(url, config.postgres.pool, "tempmail bench")?;
        migrate(&store).await;
        store.record_free_class(config.retention.free_hours).await?;
        let clock = TestClock::default();
        store.add_system_domain(DOMAIN, None, None, clock.now()).await?;
        let defaults = TenantLimits::pro(RetentionClass::PRO);
        let tenant = store.ensure_tenant("bench", &defaults, clock.now()).await?;
        let token = insert_token(&store, tenant, TokenKind::Live, clock.now()).await?;
        let business_clock: Arc<dyn Clock> = Arc::new(clock.clone());
        let worker = Worker::new(Arc::clone(&config), store.clone(), Arc::clone(&business_clock));
        worker.run_once().await?;
        let context = RoleContext {
            config: Arc::clone(&config),
            bus: Arc::new(LocalBus::new()),
            clock: business_clock,
            readiness: Readiness::default(),
        };
        let roles = Roles::new(context)
            .with_ingest(store.clone())
            .await?
            .with_api(store.clone(), Keys::from_config(&config)?)
            .await?;
        let smtp = *roles.smtp_addresses().first().context("no SMTP listener")?;
        let http = roles.http_address().context("no HTTP listener")?;
        let shutdown = Shutdown::new();
        let running = AbortOnDropHandle::new(tokio::spawn(roles.run(shutdown.clone())));
        Ok(Self { config, tenant, smtp, http, token, clock, store, worker, shutdown, running })
    }

    /// Moves business time to `moment` and creates the partitions for its mail. Expired mail is left for
    /// the worker.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn advance_to(&self, moment: Timestamp) -> anyhow::Result<()> {
        self.create_partitions(RetentionClass::FREE, moment).await?;
        self.clock.advance(moment.duration_since(self.clock.now()));
        Ok(())
    }

    /// Creates the partition of a class at a moment, and the next one.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn create_partitions(&self, class: RetentionClass, moment: Timestamp) -> anyhow::Result<()> {
        self.store.ensure_message_partition(class, moment).await?;
        self.store.ensure_message_partition(class, moment + class.partition_width()).await?;
        Ok(())
    }

    /// Creates a token.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn token(&self, kind: TokenKind) -> anyhow::Result<String> {
        insert_token(&self.store, self.tenant, kind, self.clock.now()).await
    }

    /// One pass of all the worker's loops.
    ///
    /// # Errors
    /// A loop fails.
    pub async fn run_worker_once(&self) -> anyhow::Result<()> {
        self.worker.run_once().await
    }

    /// Number of stored messages, including expired ones.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn messages(&self) -> anyhow::Result<i64> {
        Ok(sqlx::query_scalar("SELECT count(*) FROM message").fetch_one(self.store.pool()).await?)
    }

    /// Stops the roles.
    ///
    /// # Errors
    /// A role failed.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.drain.cancel();
        self.shutdown.stop.cancel();
        self.running.await.context("a role panicked")??;
        self.store.pool().close().await;
        Ok(())
    }
}

/// Settings for loopback, with fresh keys.
///
/// # Errors
/// None.
pub fn config() -> anyhow::Result<Config> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let networks = vec!["127.0.0.0/8".parse()?];
    let mut config = Config::default();
    config.http.listen = loopback;
    config.http.base_url = "http://127.0.0.1:8080".into();
    config.http.unlimited_networks.clone_from(&networks);
    config.smtp.listen = loopback;
    config.smtp.hostname = "bench.example".into();
    config.smtp.unlimited_networks = networks;
    config.limits.v1_per_second = 1_000_000;
    config.limits.tenant_changes = 1_000_000;
    config.postgres.pool = 10;
    config.jwt.keys = vec![random_key("jwt")];
    config.secrets.keys = vec![random_key("secrets")];
    Ok(config)
}

async fn insert_token(
    store: &Store,
    tenant: Uuid,
    kind: TokenKind,
    now: Timestamp,
) -> anyhow::Result<String> {
    let token = PlainToken::generate(kind).context("no randomness")?;
    let new = NewToken {
        tenant,
        kind,
        name: "bench",
        token: &token,
        surfaces: &[],
        created_by: "bench",
        expires_at: None,
    };
    store.insert_token(new, now).await?;
    Ok(token.expose().to_owned())
}
