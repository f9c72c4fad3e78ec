//! A Postgres server of one test, which may stop, kill and restart it.

use nix::sys::signal::{Signal, kill};
use tempmail_embedded_postgres::{EmbeddedPostgres, Options};
use tokio::sync::Mutex;

use super::directory::ServerDirectory;
use super::{Database, downloads, migrate_with_logins, settings, url_of};
use crate::process::{self, pid};

/// The database of [`DedicatedPostgres::database`].
const DATABASE: &str = "tempmail";

/// How to stop a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Closes all connections and writes a checkpoint (SIGINT).
    Fast,
    /// Stops at once and recovers at the next start (SIGQUIT).
    Immediate,
    /// SIGKILL to the server and all its processes.
    Kill,
}

/// A server that one test owns. Committed data survives every [`StopMode`] but not a crash of the
/// machine: `fsync` is off, as for the shared server, but a commit waits until the kernel has the data
/// (`synchronous_commit`).
#[derive(Debug)]
pub struct DedicatedPostgres {
    running: Mutex<Option<EmbeddedPostgres>>,
    options: Options,
    url: String,
    // Dropped last, because it removes the data.
    _directory: ServerDirectory,
}

impl DedicatedPostgres {
    /// Starts a new server.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start() -> Self {
        let directory = ServerDirectory::create();
        let mut options = Options::new(directory.path());
        options.durable = false;
        options.downloads = downloads();
        options.settings = settings(&[
            ("synchronous_commit", "on"),
            ("full_page_writes", "on"),
            ("max_connections", "200"),
            ("shared_buffers", "128MB"),
        ]);
        let server = EmbeddedPostgres::start(options.clone()).await.expect("Postgres starts");
        let url = server.connection_url("postgres");
        Self { running: Mutex::new(Some(server)), options, url, _directory: directory }
    }

    /// Creates its one database, migrated and empty.
    ///
    /// # Panics
    /// It exists already, or the server does not run.
    pub async fn database(&self) -> Database {
        super::admin(&self.url, format!("CREATE DATABASE {DATABASE}")).await;
        let url = url_of(&self.url, DATABASE);
        migrate_with_logins(&url).await;
        Database { name: DATABASE.to_owned(), url, is_shared: false }
    }

    /// Stops it and waits until all its processes are gone. Does nothing if it is stopped.
    ///
    /// # Panics
    /// It keeps running.
    pub async fn stop(&self, mode: StopMode) {
        let Some(mut server) = self.running.lock().await.take() else { return };
        let mut processes = process::descendants(server.pid());
        processes.push(server.pid());
        match mode {
            StopMode::Fast => return server.stop().await,
            StopMode::Immediate => kill(pid(server.pid()), Signal::SIGQUIT).expect("the server is there"),
            StopMode::Kill => process::kill_all(&processes),
        }
        server.wait().await.expect("our own child can be waited for");
        process::wait_until_gone(&processes);
    }

    /// Starts it again at the same address and waits until it accepts connections. Does nothing if it runs.
    ///
    /// # Panics
    /// It does not start.
    pub async fn ensure_started(&self) {
        let mut running = self.running.lock().await;
        if running.is_none() {
            *running = Some(EmbeddedPostgres::start(self.options.clone()).await.expect("Postgres starts"));
        }
    }

    /// Stops it and starts it again.
    ///
    /// # Panics
    /// It keeps running, or does not start.
    pub async fn restart(&self, mode: StopMode) {
        self.stop(mode).await;
        self.ensure_started().await;
    }
}

impl Drop for DedicatedPostgres {
    fn drop(&mut self) {
        if let Some(server) = self.running.get_mut().take() {
            let mut processes = process::descendants(server.pid());
            processes.push(server.pid());
            drop(server);
            process::wait_until_gone(&processes);
        }
    }
}
