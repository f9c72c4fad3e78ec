//! One real Postgres a test run, and a migrated database of its own for every test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgPool};
use tempmail_embedded_postgres::{EmbeddedPostgres, Options};
use tempmail_store::Store;
use tokio::sync::OnceCell;

use crate::wait::eventually;

const TEMPLATE: &str = "tempmail_template";
/// Waits for the test process, which holds the other end of standard input, to end; nothing in
/// it runs when `exit` ends it.
const CLEAN_UP: &str = "read -r _; kill -QUIT $1; rm -rf \"$2\"";

/// The server of this run.
#[derive(Debug)]
pub struct Server {
    url: String,
    socket: PathBuf,
    log: PathBuf,
    _alive: ChildStdin,
}

impl Server {
    /// Directory of the socket.
    pub fn socket_directory(&self) -> &Path {
        &self.socket
    }

    /// Its log, to which databases write what [`Database::log_plans`] asks for.
    pub fn log(&self) -> &Path {
        &self.log
    }

    fn url(&self, database: &str) -> String {
        self.url.replace("/postgres?", &format!("/{database}?"))
    }

    fn start() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("tempmail-tests-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a directory for Postgres can be made")
            .keep();
        let mut options = Options::new(&directory);
        options.durable = false;
        options.downloads = downloads();
        options.settings =
            [("max_connections", "400"), ("shared_buffers", "128MB"), ("autovacuum_naptime", "5s")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec();
        // On a thread of its own: the runtime of the test that is first ends with that test.
        let (started, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async move {
                let server = EmbeddedPostgres::start(options).await.expect("Postgres starts");
                let told =
                    (server.pid(), server.connection_url("postgres"), server.socket_directory().to_owned());
                started.send(told).expect("the test waits for it");
                std::future::pending::<()>().await;
            });
        });
        let (pid, url, socket) = wait.recv().expect("Postgres starts");
        let mut clean_up = Command::new("sh");
        clean_up.args(["-c", CLEAN_UP, "sh", &pid.to_string()]).arg(&directory).current_dir("/");
        // What interrupts the tests must not interrupt it.
        clean_up.process_group(0);
        let clean_up = clean_up.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let alive = clean_up.expect("sh starts").stdin.take().expect("standard input is a pipe");
        Self { url, socket, log: directory.join("postgres.log"), _alive: alive }
    }
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

/// A database of one test. Dropped with it.
#[derive(Debug)]
pub struct Database {
    name: String,
}

impl Database {
    /// A copy of the migrated template.
    pub async fn create() -> Self {
        static MADE: OnceCell<()> = OnceCell::const_new();
        static NEXT: AtomicU32 = AtomicU32::new(1);
        MADE.get_or_init(make_template).await;
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        admin(format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}")).await;
        Self { name }
    }

    /// Its URL, over the socket.
    pub fn url(&self) -> String {
        server().url(&self.name)
    }

    /// Its URL over TCP through a proxy at `port` of loopback.
    ///
    /// # Panics
    /// The server's URL has another form.
    pub fn url_through(&self, port: u16) -> String {
        let url = self.url();
        let (url, _socket) = url.split_once('?').expect("the socket is a parameter of the URL");
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
            admin(format!("ALTER DATABASE {} SET {name} = '{value}'", self.name)).await;
        }
        let probe = PgConnection::connect(&self.url()).await;
        probe.expect("Postgres has auto_explain: install Debian's `postgresql`");
    }

    /// Returns when no connection to the database has a statement or a transaction in hand: all
    /// that were sent are in the log then.
    pub async fn is_idle(&self) {
        eventually("the database is idle", || async {
            let url = server().url("postgres");
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
        let options = self.url().parse().expect("our own URL is one");
        PgPoolOptions::new().max_connections(4).connect_lazy_with(options)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(admin(statement));
        });
        let _ = dropped.join();
    }
}

async fn make_template() {
    let server = tokio::task::spawn_blocking(server).await.expect("the server starts");
    admin(format!("CREATE DATABASE {TEMPLATE}")).await;
    let store = Store::connect(&server.url(TEMPLATE), 1, "tempmail tests").expect("our own URL is one");
    store.migrate().await.expect("the migrations apply to an empty database");
    store.pool().close().await;
}

async fn admin(statement: String) {
    let mut connection =
        PgConnection::connect(&server().url("postgres")).await.expect("Postgres takes connections");
    connection.execute(AssertSqlSafe(statement)).await.expect("Postgres administers databases");
    let _ = connection.close().await;
}
