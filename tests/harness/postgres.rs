//! One real Postgres a test run, and a migrated database of its own for every test.

mod dedicated;
mod directory;
mod proxy;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgPool};
use tempmail_embedded_postgres::{EmbeddedPostgres, Options};
use tempmail_store::Store;
use tokio::sync::OnceCell;

pub use self::dedicated::{DedicatedPostgres, StopMode};
use self::directory::Directory;
pub use self::proxy::PostgresProxy;
use crate::wait::eventually;

const TEMPLATE: &str = "tempmail_template";
/// The server of this run.
#[derive(Debug)]
pub struct Server {
    url: String,
    socket: PathBuf,
    directory: Directory,
}

impl Server {
    /// Directory of the socket.
    pub fn socket_directory(&self) -> &Path {
        &self.socket
    }

    /// Its log, to which databases write what [`Database::log_plans`] asks for.
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("postgres.log")
    }

    fn url(&self, database: &str) -> String {
        url_of(&self.url, database)
    }

    fn start() -> Self {
        let directory = Directory::make();
        let mut options = Options::new(directory.path());
        options.durable = false;
        options.downloads = downloads();
        options.settings = settings(&[
            ("max_connections", "400"),
            ("shared_buffers", "128MB"),
            ("autovacuum_naptime", "5s"),
        ]);
        // On a thread of its own: the runtime of the test that is first ends with that test.
        let (started, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async move {
                let server = EmbeddedPostgres::start(options).await.expect("Postgres starts");
                let told = (server.connection_url("postgres"), server.socket_directory().to_owned());
                started.send(told).expect("the test waits for it");
                std::future::pending::<()>().await;
            });
        });
        let (url, socket) = wait.recv().expect("Postgres starts");
        Self { url, socket, directory }
    }
}

/// Settings of a server of the tests.
fn settings(own: &[(&str, &str)]) -> Vec<(String, String)> {
    // In its directory, so that a server which is killed leaves nothing of it behind.
    let memory = [("dynamic_shared_memory_type", "mmap")];
    memory.iter().chain(own).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The URL of another database of the server that `url` names one of.
fn url_of(url: &str, database: &str) -> String {
    let (start, socket) = url.split_once('?').expect("the socket is a parameter of the URL");
    let (server, _) = start.rsplit_once('/').expect("the URL names a database");
    format!("{server}/{database}?{socket}")
}

/// The server of this run, started at the first use.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

/// Where downloaded binaries are kept from run to run: in the target directory.
pub fn downloads() -> PathBuf {
    let test = std::env::current_exe().expect("a process knows its program");
    let target = test.ancestors().nth(3).expect("tests lie in target/<profile>/deps");
    target.join("postgres")
}

/// A database of one test. Dropped with it, or with its server where that is the test's too.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    is_shared: bool,
}

impl Database {
    /// A copy of the migrated template.
    pub async fn create() -> Self {
        static MADE: OnceCell<()> = OnceCell::const_new();
        MADE.get_or_init(make_template).await;
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
        admin(&server.url, format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        Self { url: server.url(&name), name, is_shared: true }
    }

    /// Its URL, over the socket.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Its URL over TCP through a proxy at `port` of loopback.
    ///
    /// # Panics
    /// The server's URL has another form.
    pub fn url_through(&self, port: u16) -> String {
        let (url, _socket) = self.url.split_once('?').expect("the socket is a parameter of the URL");
        format!("{}?sslmode=disable", url.replace("@localhost/", &format!("@127.0.0.1:{port}/")))
    }

    /// Lets every connection made from now on write each statement it is sent to the server's
    /// log, and how it was carried out, the statements within functions included.
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

    /// Returns when no connection to the database has a statement or a transaction in hand: all
    /// that were sent are in the log then.
    pub async fn wait_until_idle(&self) {
        eventually("the database is idle", || async {
            let url = url_of(&self.url, "postgres");
            let mut connection = PgConnection::connect(&url).await.expect("Postgres takes connections");
            let busy: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND state <> 'idle'",
            )
            .bind(&self.name)
            .fetch_one(&mut connection)
            .await
            .expect("Postgres tells what it does");
            let _ = connection.close().await;
            (busy == 0).then_some(())
        })
        .await;
    }

    /// A pool of the test's own, which no proxy is in the way of.
    ///
    /// # Panics
    /// The server's URL is none.
    pub fn pool(&self) -> PgPool {
        let options = self.url.parse().expect("our own URL is one");
        PgPoolOptions::new().max_connections(4).connect_lazy_with(options)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !self.is_shared {
            return;
        }
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(admin(&server().url, statement));
        });
        let _ = dropped.join();
    }
}

async fn make_template() {
    let server = tokio::task::spawn_blocking(server).await.expect("the server starts");
    admin(&server.url, format!("CREATE DATABASE {TEMPLATE}")).await;
    migrate(&server.url(TEMPLATE)).await;
}

async fn migrate(url: &str) {
    let store = Store::connect(url, 1, "tempmail tests").expect("our own URL is one");
    store.migrate().await.expect("the migrations apply to an empty database");
    store.pool().close().await;
}

/// Carries out a statement on the server that `url` names a database of.
async fn admin(url: &str, statement: String) {
    let url = url_of(url, "postgres");
    let mut connection = PgConnection::connect(&url).await.expect("Postgres takes connections");
    connection.execute(AssertSqlSafe(statement)).await.expect("Postgres administers databases");
    let _ = connection.close().await;
}
