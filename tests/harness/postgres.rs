//! One Postgres server for a test run, with a migrated database for each test.

mod dedicated;
mod directory;
mod dump;
mod migration;
mod pgbouncer;
mod proxy;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use jiff::SignedDuration;
use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgPool};
use tempmail_embedded_postgres::{EmbeddedPostgres, Options};
use tempmail_model::clock::{Clock as _, TestClock};
use tempmail_model::retention::RetentionClass;
use tempmail_store::Store;
use tokio::sync::OnceCell;

pub use self::dedicated::{DedicatedPostgres, REPLICATION, StopMode, SuspendedBackends};
use self::directory::ServerDirectory;
pub use self::dump::Dump;
pub use self::migration::migrate;
use self::migration::{migrate_with_logins, url_for};
pub use self::pgbouncer::{PgBouncer, PoolMode};
pub use self::proxy::PostgresProxy;
use crate::fleet::Role;
use crate::wait::eventually;

const TEMPLATE: &str = "tempmail_template";
/// Partitions of a retention class that the template has: 35 minutes of the shortest, of which a worker needs 15.
const PARTITIONS: i32 = 7;

/// The server that the tests of this run share.
#[derive(Debug)]
pub struct SharedPostgres {
    url: String,
    socket: PathBuf,
    directory: ServerDirectory,
}

impl SharedPostgres {
    /// Directory of the socket.
    pub fn socket_directory(&self) -> &Path {
        &self.socket
    }

    /// Its log, which has the plans of [`Database::log_plans`].
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("postgres.log")
    }

    fn url(&self, database: &str) -> String {
        url_of(&self.url, database)
    }

    fn start() -> Self {
        let directory = ServerDirectory::create();
        let mut options = Options::new(directory.path());
        options.durable = false;
        options.downloads = downloads();
        options.settings = settings(&[
            ("max_connections", "400"),
            // A page that is mapped costs each of the thousands of connections.
            ("shared_buffers", "32MB"),
            ("autovacuum_naptime", "5s"),
        ]);
        // On a thread of its own, because the runtime of the first test ends with that test.
        let (started, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async move {
                let server = EmbeddedPostgres::start(options).await.expect("Postgres starts");
                let addresses = (server.connection_url("postgres"), server.socket_directory().to_owned());
                started.send(addresses).expect("the test waits for it");
                std::future::pending::<()>().await;
            });
        });
        let (url, socket) = wait.recv().expect("Postgres starts");
        Self { url, socket, directory }
    }
}

/// Settings that all servers of tests share, and those of one server.
fn settings(own: &[(&str, &str)]) -> Vec<(String, String)> {
    // In its directory, so that a killed server leaves no shared memory behind.
    let memory = [("dynamic_shared_memory_type", "mmap")];
    memory.iter().chain(own).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The URL of another database on the server of `url`.
fn url_of(url: &str, database: &str) -> String {
    let (start, socket) = url.split_once('?').expect("the socket is a parameter of the URL");
    let (server, _) = start.rsplit_once('/').expect("the URL names a database");
    format!("{server}/{database}?{socket}")
}

/// The shared server, started at the first use.
pub fn server() -> &'static SharedPostgres {
    static SERVER: OnceLock<SharedPostgres> = OnceLock::new();
    SERVER.get_or_init(SharedPostgres::start)
}

/// Directory of downloaded Postgres binaries: in the target directory, so that later runs reuse them.
pub fn downloads() -> PathBuf {
    let test = std::env::current_exe().expect("a process knows its program");
    let target = test.ancestors().nth(3).expect("tests lie in target/<profile>/deps");
    target.join("postgres")
}

/// A database of one test, dropped with it.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    is_shared: bool,
}

impl Database {
    /// A copy of the migrated template.
    pub async fn create() -> Self {
        static TEMPLATE_CREATED: OnceCell<()> = OnceCell::const_new();
        TEMPLATE_CREATED.get_or_init(create_template).await;
        Self::of_template(TEMPLATE).await
    }

    /// One without tables, for `tempmail migrate`.
    pub async fn empty() -> Self {
        tokio::task::spawn_blocking(server).await.expect("the server starts");
        Self::of_template("template1").await
    }

    async fn of_template(template: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let server = server();
        // A copy of the files includes the relation cache, which the first connection would build otherwise.
        admin(&server.url, format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")).await;
        Self { url: server.url(&name), name, is_shared: true }
    }

    /// Its URL for the owner, over the Unix socket.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Its URL for the login of a role, which has the rights of that role only.
    pub fn role_url(&self, role: Role) -> String {
        url_for(role, &self.url)
    }

    /// The same over TCP through a proxy at `port` of loopback, or without one.
    pub fn role_url_through(&self, role: Role, port: Option<u16>) -> String {
        url_for(role, &port.map_or_else(|| self.url(), |port| self.url_through(port)))
    }

    /// Its URL for the owner over TCP through a proxy at `port` of loopback.
    ///
    /// # Panics
    /// The server's URL has another form.
    pub fn url_through(&self, port: u16) -> String {
        let (url, _socket) = self.url.split_once('?').expect("the socket is a parameter of the URL");
        format!("{}?sslmode=disable", url.replace("@localhost/", &format!("@127.0.0.1:{port}/")))
    }

    /// Logs the statements and plans of all connections from now on, including statements in functions.
    ///
    /// # Panics
    /// The server was built without `auto_explain`; Debian's packages have it.
    pub async fn log_plans(&self) {
        let settings = [
            ("session_preload_libraries", "auto_explain"),
            ("auto_explain.log_min_duration", "0"),
            ("auto_explain.log_analyze", "on"),
            ("auto_explain.log_timing", "off"),
            ("auto_explain.log_nested_statements", "on"),
            ("auto_explain.log_format", "json"),
            ("log_statement", "all"),
        ];
        for (name, value) in settings {
            admin(&self.url, format!("ALTER DATABASE {} SET {name} = '{value}'", self.name)).await;
        }
        let probe = PgConnection::connect(&self.url).await;
        probe.expect("Postgres has auto_explain: install Debian's `postgresql`");
    }

    /// Waits until no connection runs a statement or transaction. All statements are logged then.
    pub async fn wait_until_idle(&self) {
        eventually("the database is idle", || async {
            let url = url_of(&self.url, "postgres");
            let mut connection = PgConnection::connect(&url).await.expect("Postgres accepts connections");
            let busy: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND state <> 'idle'",
            )
            .bind(&self.name)
            .fetch_one(&mut connection)
            .await
            .expect("Postgres answers");
            let _ = connection.close().await;
            (busy == 0).then_some(())
        })
        .await;
    }

    /// A pool that bypasses all proxies.
    ///
    /// # Panics
    /// The URL is invalid.
    pub fn pool(&self) -> PgPool {
        let options = self.url.parse().expect("our own URL is one");
        PgPoolOptions::new().max_connections(4).connect_lazy_with(options)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.is_shared {
            drop_later(std::mem::take(&mut self.name));
        }
    }
}

/// Has a thread of its own drop the databases of tests that ended, one after the other. A test must not wait for
/// it: Postgres waits for connections that are being opened, and those of the test need the test's thread.
fn drop_later(name: String) {
    static NAMES: OnceLock<mpsc::Sender<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let (sender, names) = mpsc::channel::<String>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime can be made");
            for name in names {
                let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                runtime.block_on(admin(&server().url, statement));
            }
        });
        sender
    });
    // The server goes with the run in any case.
    let _ = names.send(name);
}

async fn create_template() {
    let server = tokio::task::spawn_blocking(server).await.expect("the server starts");
    admin(&server.url, format!("CREATE DATABASE {TEMPLATE}")).await;
    migrate_with_logins(&server.url(TEMPLATE)).await;
    create_partitions(&server.url(TEMPLATE)).await;
}

/// Creates the partitions that the workers of most tests would create: it is a quarter of what they have Postgres do.
async fn create_partitions(url: &str) {
    let store = Store::connect(url, 1, "tempmail tests").expect("our own URL is one");
    let now = TestClock::default().now();
    for class in [RetentionClass::FREE, RetentionClass::PRO] {
        for number in 0..PARTITIONS {
            let created = store.ensure_message_partition(class, now + class.partition_width() * number).await;
            created.expect("the tables can be created");
        }
    }
    for days in 0..=1 {
        let created = store.ensure_delivery_partition(now + SignedDuration::from_hours(24 * days)).await;
        created.expect("the table can be created");
    }
    store.pool().close().await;
}

/// Runs a statement on the server of `url`.
async fn admin(url: &str, statement: String) {
    let url = url_of(url, "postgres");
    let mut connection = PgConnection::connect(&url).await.expect("Postgres accepts connections");
    connection.execute(AssertSqlSafe(statement)).await.expect("the statement succeeds");
    let _ = connection.close().await;
}
