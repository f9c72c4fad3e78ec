//! What is measured: `tempmail ingest` and `tempmail worker` with a Redis between them over a
//! database of their own, with a tenant, a mailbox and a webhook for each receiver.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use jiff_sqlx::ToSqlx as _;
use tempmail_model::clock::{Clock as _, TestClock};
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_model::webhook::{EMAIL_RECEIVED, WebhookSecret};
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_store::{NewWebhook, Store, TenantLimits};
use tempmail_tests::port::free_port;
use tempmail_tests::postgres::migrate;
use tempmail_tests::receiver::ca_file;
use tokio::process::Command;
use uuid::Uuid;

use super::receivers::Receivers;
use crate::http::HttpClient;
use crate::process::{ServerProcess, tempmail};
use crate::realtime::pool::LoadThread;
use crate::server::command_without_output;
use crate::stack::{BenchPostgres, DOMAIN, config};

/// How long it may take until something has happened.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where everything runs.
pub struct WebhookBench {
    /// tempmail.
    pub program: PathBuf,
    /// redis-server.
    pub redis_server: PathBuf,
    /// Their files.
    pub directory: PathBuf,
    /// Postgres.
    pub cluster: BenchPostgres,
    /// The thread that sends mail.
    pub load_thread: LoadThread,
    /// The thread of the receivers.
    pub receivers: Receivers,
}

/// The platform under test.
pub struct WebhookSetup<'a> {
    bench: &'a WebhookBench,
    name: String,
    url: String,
    config: Config,
    redis: ServerProcess,
    redis_url: String,
    clock: TestClock,
    /// Its database.
    pub store: Store,
    tenants: u32,
}

/// A `tempmail worker`.
pub struct WorkerProcess {
    /// The process.
    pub process: ServerProcess,
    admin: SocketAddr,
}

impl<'a> WebhookSetup<'a> {
    /// One without webhooks.
    ///
    /// # Errors
    /// Postgres or Redis does not start, or the name is taken.
    pub async fn new(bench: &'a WebhookBench, name: &str) -> anyhow::Result<Self> {
        let (url, config) = (bench.cluster.create_database(name).await?, config()?);
        let store = Store::connect(&url, config.postgres.pool, "tempmail bench")?;
        let clock = TestClock::default();
        migrate(&store).await;
        store.record_free_class(config.retention.free_hours).await?;
        store.add_system_domain(DOMAIN, None, None, clock.now()).await?;
        for class in [RetentionClass::FREE, RetentionClass::PRO] {
            for at in [clock.now(), clock.now() + class.partition_width()] {
                store.ensure_message_partition(class, at).await?;
            }
        }
        let (redis, redis_url) = redis(&bench.redis_server, &bench.directory).await?;
        let name = name.to_owned();
        Ok(Self { bench, name, url, config, redis, redis_url, clock, store, tenants: 0 })
    }

    /// The address whose mail receiver `number` is notified of.
    pub fn address(number: u32) -> String {
        format!("{number}box@{DOMAIN}")
    }

    /// Tenants with a mailbox and a webhook to one of `urls` each; their numbers follow those that
    /// are there.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn add_webhooks(&mut self, urls: &[String]) -> anyhow::Result<()> {
        let sealer = WebhookSecretSealer::new(&Keys::from_config(&self.config)?.secrets);
        let defaults = TenantLimits::pro(RetentionClass::PRO);
        for url in urls {
            let (now, number, id) = (self.clock.now(), self.tenants, new_id(self.clock.now()));
            let tenant = self.store.ensure_tenant(&format!("bench-{number}"), &defaults, now).await?;
            self.insert_mailbox(tenant, number).await?;
            let secret = sealer.seal(id, WebhookSecret::generate()?.expose());
            let new = NewWebhook { id, tenant, url, events: &[EMAIL_RECEIVED], secret: &secret };
            self.store.create_webhook(new, now).await?;
            self.tenants += 1;
        }
        Ok(())
    }

    async fn insert_mailbox(&self, tenant: Uuid, number: u32) -> anyhow::Result<()> {
        let now = self.clock.now();
        sqlx::query(
            "INSERT INTO mailbox (id, domain, local_part, tenant, quota, password_hash, created_at, seen_at)
             SELECT $1, id, $2, $3, 524288000, 'none', $4, $4 FROM domain WHERE name = $5",
        )
        .bind(new_id(now))
        .bind(format!("{number}box"))
        .bind(tenant)
        .bind(now.to_sqlx())
        .bind(DOMAIN)
        .execute(self.store.pool())
        .await?;
        Ok(())
    }

    /// Events that wait.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn waiting(&self) -> anyhow::Result<i64> {
        Ok(sqlx::query_scalar("SELECT count(*) FROM webhook_event").fetch_one(self.store.pool()).await?)
    }

    /// Waits until no event does.
    ///
    /// # Errors
    /// They do for five minutes.
    pub async fn delivered(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while self.waiting().await? > 0 {
            ensure!(began.elapsed() < PATIENCE, "{} events still wait", self.waiting().await?);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    /// Starts `tempmail ingest`; also where it takes mail.
    ///
    /// # Errors
    /// It does not get ready.
    pub async fn ingest(&self) -> anyhow::Result<(ServerProcess, SocketAddr)> {
        let smtp = free_port();
        let (mut command, admin) = self.command("ingest");
        command.env("TEMPMAIL_SMTP__LISTEN", smtp.to_string());
        let mut process = ServerProcess::start("ingest", command, &self.bench.directory)?;
        process.wait_until_answering(admin, "/readyz").await?;
        Ok((process, smtp))
    }

    /// Starts `tempmail worker`.
    ///
    /// # Errors
    /// It does not get ready.
    pub async fn worker(&self) -> anyhow::Result<WorkerProcess> {
        let (mut command, admin) = self.command("worker");
        command
            .env("TEMPMAIL_WEBHOOKS__ALLOWED_NETWORKS", "127.0.0.0/8,::1/128")
            .env("TEMPMAIL_WEBHOOKS__CA_FILE", ca_file());
        let mut process = ServerProcess::start("worker", command, &self.bench.directory)?;
        process.wait_until_answering(admin, "/readyz").await?;
        Ok(WorkerProcess { process, admin })
    }

    fn command(&self, role: &str) -> (Command, SocketAddr) {
        let admin = free_port();
        let mut command = tempmail(&self.bench.program, role, &self.url, &self.config);
        command.env("TEMPMAIL_ADMIN__LISTEN", admin.to_string()).env("TEMPMAIL_REDIS__URL", &self.redis_url);
        (command, admin)
    }

    /// Drops the database and stops Redis.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn remove(self) -> anyhow::Result<()> {
        self.store.pool().close().await;
        self.redis.stop().await?;
        self.bench.cluster.drop_database(&self.name).await
    }
}

impl WorkerProcess {
    /// Requests that are under way.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn in_flight(&self) -> anyhow::Result<u32> {
        let answer = HttpClient::connect(self.admin).await?.get("/metrics", "none").await?;
        let text = String::from_utf8_lossy(&answer.body);
        let name = "tempmail_webhook_requests_in_flight ";
        let gauge = text.lines().find_map(|line| line.strip_prefix(name));
        gauge.unwrap_or("0").trim().parse().context("the gauge is no number")
    }
}

async fn redis(program: &Path, directory: &Path) -> anyhow::Result<(ServerProcess, String)> {
    let address = free_port();
    let mut command = command_without_output(program);
    command
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
        .args(["--save", "", "--appendonly", "no"])
        .current_dir(directory);
    let mut process = ServerProcess::start("redis", command, directory)
        .context("`apt-get install redis-server`, or name one by REDIS_SERVER")?;
    process.wait_until(async || tokio::net::TcpStream::connect(address).await.is_ok()).await?;
    Ok((process, format!("redis://{address}")))
}
