//! What is attacked: `api`, `ingest` and `worker` with a Redis between them over a database of their own, with the
//! default limits. No client is exempt.

use std::path::Path;
use std::time::Duration;

use sqlx::PgPool;
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_model::retention::RetentionClass;
use tempmail_runtime::config::Config;
use tempmail_store::Store;
use tempmail_tests::attack::Listeners;
use tempmail_tests::port::free_port;
use tempmail_tests::postgres::migrate;
use tempmail_tests::{RedisServer, TestDns};
use tokio::process::Command;
use tokio::time::sleep;

use super::disk::Disk;
use crate::process::{ServerProcess, tempmail};
use crate::stack::{BenchPostgres, DOMAIN, config};

/// Its database, which the next platform replaces.
const DATABASE: &str = "attack";
/// Settings that other benchmarks raise: empty, they have their defaults.
const DEFAULTS: [&str; 4] = [
    "TEMPMAIL_HTTP__UNLIMITED_NETWORKS",
    "TEMPMAIL_SMTP__UNLIMITED_NETWORKS",
    "TEMPMAIL_LIMITS__V1_PER_SECOND",
    "TEMPMAIL_LIMITS__API_PER_SECOND",
];
/// Small enough to be filled while it is measured.
const STORE_BYTES: u64 = 1 << 30;

/// Time in which it ends what a measurement has left to it.
const SETTLE: Duration = Duration::from_secs(5);

/// See the module.
pub struct Platform {
    /// Where it listens.
    pub listeners: Listeners,
    /// Its database.
    pub pool: PgPool,
    api: ServerProcess,
    ingest: ServerProcess,
    worker: ServerProcess,
    _redis: RedisServer,
}

impl Platform {
    /// An empty one that finds name servers in `dns`.
    ///
    /// # Errors
    /// A process does not start.
    pub async fn start(
        program: &Path,
        directory: &Path,
        cluster: &BenchPostgres,
        dns: &TestDns,
    ) -> anyhow::Result<Self> {
        let (url, config) = (cluster.create_database(DATABASE).await?, config()?);
        let store = Store::connect(&url, config.postgres.pool, "tempmail bench")?;
        migrate(&store).await;
        store.record_free_class(config.retention.free_hours).await?;
        let now = SystemClock::default().now();
        store.add_system_domain(DOMAIN, None, None, now).await?;
        // The tenants come when the worker has looked for missing partitions already.
        for class in [RetentionClass::FREE, RetentionClass::PRO] {
            for at in [now, now + class.partition_width()] {
                store.ensure_message_partition(class, at).await?;
            }
        }
        store.pool().close().await;

        let redis = RedisServer::new();
        let start = async |role: &str, listen: &str| {
            let (address, admin) = (free_port(), free_port());
            let mut command = command(program, role, &url, &config, dns);
            command.env("TEMPMAIL_REDIS__URL", redis.url()).env("TEMPMAIL_ADMIN__LISTEN", admin.to_string());
            if !listen.is_empty() {
                command.env(listen, address.to_string());
            }
            let mut process = ServerProcess::start(role, command, directory)?;
            process.wait_until_answering(admin, "/readyz").await?;
            anyhow::Ok((process, address, admin))
        };
        let (worker, _, worker_admin) = start("worker", "").await?;
        let (api, http, api_admin) = start("api", "TEMPMAIL_HTTP__LISTEN").await?;
        let (ingest, smtp, ingest_admin) = start("ingest", "TEMPMAIL_SMTP__LISTEN").await?;
        let listeners = Listeners { smtp, http, admin: vec![api_admin, ingest_admin, worker_admin] };
        Ok(Self { listeners, pool: PgPool::connect_lazy(&url)?, api, ingest, worker, _redis: redis })
    }

    /// Waits until what was measured before no longer occupies it: a measurement begins with clean pages, from a
    /// checkpoint, with segments of the log to use again, and on a quiet disk.
    ///
    /// # Errors
    /// Postgres or the disk refuses.
    pub async fn settle(&self, disk: &Disk) -> anyhow::Result<()> {
        sleep(SETTLE).await;
        sqlx::query("CHECKPOINT").execute(&self.pool).await?;
        disk.wait_until_quiet().await?;
        Ok(())
    }

    /// Peak resident memory of `api` and of `ingest`, MiB.
    ///
    /// # Errors
    /// One of them has ended.
    pub fn peak_memory(&self) -> anyhow::Result<(u64, u64)> {
        Ok((self.api.memory()?.peak >> 20, self.ingest.memory()?.peak >> 20))
    }

    /// Stops it and drops its database.
    ///
    /// # Errors
    /// The operating system or Postgres refuses.
    pub async fn stop(self, cluster: &BenchPostgres) -> anyhow::Result<()> {
        self.pool.close().await;
        for process in [self.ingest, self.api, self.worker] {
            process.stop().await?;
        }
        cluster.drop_database(DATABASE).await
    }
}

/// The command of a role.
fn command(program: &Path, role: &str, url: &str, config: &Config, dns: &TestDns) -> Command {
    let mut command = tempmail(program, role, url, config);
    for name in DEFAULTS {
        command.env(name, "");
    }
    command
        .env("TEMPMAIL_LIMITS__STORE_BYTES", STORE_BYTES.to_string())
        .env("TEMPMAIL_LIMITS__SHARED_BYTES", (STORE_BYTES / 2).to_string())
        .env("TEMPMAIL_DNS__SERVERS", dns.seed().to_string())
        .env("TEMPMAIL_DNS__PORT", dns.port().to_string())
        .env("TEMPMAIL_DNS__ALLOW_PRIVATE", "true");
    command
}
