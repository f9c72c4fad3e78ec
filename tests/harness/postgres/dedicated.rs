//! A server of one test, which may stop, kill and restart it.

use nix::sys::signal::{Signal, kill};
use tempmail_embedded_postgres::{EmbeddedPostgres, Options};
use tokio::sync::Mutex;

use super::directory::Directory;
use super::{Database, downloads, migrate, settings, url_of};
use crate::process::{self, pid};

/// The database of [`DedicatedPostgres::database`].
const DATABASE: &str = "tempmail";

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// It ends every connection and writes a checkpoint (SIGINT).
    Fast,
    /// It ends at once and recovers at the next start (SIGQUIT).
    Immediate,
    /// It and all its processes get SIGKILL.
    Kill,
}

/// A server that one test owns. What it committed outlives each [`StopMode`], and only a crash of the
/// machine could lose it: `fsync` is off, as that of the shared server, but unlike there a
/// commit waits until the kernel has it (`synchronous_commit`).
#[derive(Debug)]
pub struct DedicatedPostgres {
    running: Mutex<Option<EmbeddedPostgres>>,
    options: Options,
    url: String,
    // Dropped last: with it goes what the server wrote.
    _directory: Directory,
}

impl DedicatedPostgres {
    /// A new one, running.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start() -> Self {
        let directory = Directory::make();
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

    /// Its one database, migrated and empty. To be asked for once.
    ///
    /// # Panics
    /// It is there already, or the server is not.
    pub async fn database(&self) -> Database {
        super::admin(&self.url, format!("CREATE DATABASE {DATABASE}")).await;
        let url = url_of(&self.url, DATABASE);
        migrate(&url).await;
        Database { name: DATABASE.to_owned(), url, is_shared: false }
    }

    /// Ends it, and returns when all its processes are gone. Nothing where it has ended already.
    ///
    /// # Panics
    /// It stays.
    pub async fn stop(&self, how: StopMode) {
        let Some(mut server) = self.running.lock().await.take() else { return };
        let mut processes = process::descendants(server.pid());
        processes.push(server.pid());
        match how {
            StopMode::Fast => return server.stop().await,
            StopMode::Immediate => kill(pid(server.pid()), Signal::SIGQUIT).expect("the server is there"),
            StopMode::Kill => process::kill_all(&processes),
        }
        server.wait().await.expect("our own child can be waited for");
        process::wait_until_gone(&processes);
    }

    /// Starts it again, at the same place, and returns when it takes connections. Nothing where it
    /// runs.
    ///
    /// # Panics
    /// It does not start.
    pub async fn ensure_started(&self) {
        let mut running = self.running.lock().await;
        if running.is_none() {
            *running = Some(EmbeddedPostgres::start(self.options.clone()).await.expect("Postgres starts"));
        }
    }

    /// Ends it and starts it again.
    ///
    /// # Panics
    /// It stays, or does not start.
    pub async fn restart(&self, how: StopMode) {
        self.stop(how).await;
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
