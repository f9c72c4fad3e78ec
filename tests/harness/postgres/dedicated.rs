//! A Postgres server of one test, which may stop, kill and restart it.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use sqlx::PgPool;
use tempmail_embedded_postgres::{EmbeddedPostgres, Options};
use tokio::sync::Mutex;

use super::directory::{ServerDirectory, SmallDisk};
use super::{Database, downloads, migrate_with_logins, settings, url_of};
use crate::process::{self, pid};

/// The database of [`DedicatedPostgres::database`].
pub(super) const DATABASE: &str = "tempmail";

/// Settings of a server that may have standbys.
pub const REPLICATION: [(&str, &str); 2] = [("wal_level", "replica"), ("max_wal_senders", "4")];

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
    socket: PathBuf,
    // Dropped last, because they remove the data.
    disk: Option<SmallDisk>,
    directory: ServerDirectory,
}

impl DedicatedPostgres {
    /// Starts a new server.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a new server with further settings.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start_with(own: &[(&str, &str)]) -> Self {
        Self::start_in(ServerDirectory::create(), None, own).await
    }

    /// Starts a new server on a disk of its own with this size in MiB.
    ///
    /// # Panics
    /// It does not start, or this user may not mount a disk, neither directly nor with `sudo`.
    pub async fn start_on_disk(mebibytes: u32) -> Self {
        let directory = ServerDirectory::create();
        let disk = SmallDisk::mount(directory.path(), mebibytes);
        let log_of_writes = [("min_wal_size", "32MB"), ("max_wal_size", "64MB"), ("wal_buffers", "1MB")];
        Self::start_in(directory, Some(disk), &log_of_writes).await
    }

    async fn start_in(directory: ServerDirectory, disk: Option<SmallDisk>, own: &[(&str, &str)]) -> Self {
        let mut options = Options::new(directory.path());
        options.durable = false;
        options.downloads = downloads();
        let shared = [
            ("synchronous_commit", "on"),
            ("full_page_writes", "on"),
            ("max_connections", "200"),
            ("shared_buffers", "128MB"),
        ];
        options.settings = settings(&[&shared, own].concat());
        let server = EmbeddedPostgres::start(options.clone()).await.expect("Postgres starts");
        let url = server.connection_url("postgres");
        let socket = server.socket_directory().join(".s.PGSQL.5432");
        Self { running: Mutex::new(Some(server)), options, url, socket, disk, directory }
    }

    /// Its URL for the superuser.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// Its data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Lets clients of the socket make base backups, until the server is started again.
    ///
    /// # Panics
    /// The server does not run.
    pub async fn allow_replication(&self) {
        let rules = "local all all scram-sha-256\nlocal replication all scram-sha-256\n";
        fs::write(self.directory.path().join("pg_hba.conf"), rules).expect("the file can be written");
        super::admin(&self.url, "SELECT pg_reload_conf()".to_owned()).await;
    }

    /// Makes its user the owner of a file or directory.
    ///
    /// # Panics
    /// This user may not.
    pub fn own(&self, path: &Path) {
        let data = self.data_directory().metadata().expect("the data is there");
        chown(path, Some(data.uid()), Some(data.gid())).expect("the owner can be changed");
    }

    /// A copy of its data while it is stopped, which goes with it.
    ///
    /// # Panics
    /// There is no space for it.
    pub fn copy_data(&self) -> PathBuf {
        let copy = self.directory.path().join("copy");
        self.run_as_this_user(&format!(
            "cp --archive '{}' '{}'",
            self.data_directory().display(),
            copy.display()
        ));
        copy
    }

    /// A base backup of its data while it runs, which goes with it; after [`Self::allow_replication`].
    ///
    /// # Panics
    /// `pg_basebackup` fails.
    pub fn base_backup(&self) -> PathBuf {
        let backup = self.directory.path().join("backup");
        // Postgres starts on no directory that others may read.
        DirBuilder::new().mode(0o700).create(&backup).expect("the directory can be made");
        self.own(&backup);
        let command = "pg_basebackup --checkpoint fast --wal-method stream";
        self.run_as_its_user(&format!("{command} --dbname '{}' --pgdata '{}'", self.url, backup.display()));
        backup
    }

    /// Puts other data in the place of its own while it is stopped.
    ///
    /// # Panics
    /// The data can't be copied.
    pub fn replace_data(&self, with: &Path) {
        let data = self.data_directory();
        self.run_as_this_user(&format!(
            "rm -rf '{0}' && cp --archive '{1}' '{0}'",
            data.display(),
            with.display()
        ));
    }

    /// Runs commands of a shell as this process' user, who may read the data.
    fn run_as_this_user(&self, commands: &str) {
        let status = Command::new("sh").args(["-ec", commands]).current_dir(self.directory.path()).status();
        assert!(status.expect("sh starts").success(), "{commands}");
    }

    /// Runs commands of a shell as its user.
    ///
    /// # Panics
    /// A command fails.
    pub fn run_as_its_user(&self, commands: &str) {
        let mut shell = Command::new("sh");
        shell.args(["-ec", commands]).current_dir("/");
        if geteuid().is_root() {
            let data = self.data_directory().metadata().expect("the data is there");
            shell.uid(data.uid()).gid(data.gid());
        }
        assert!(shell.status().expect("sh starts").success(), "{commands}");
    }

    /// Fills its disk.
    ///
    /// # Panics
    /// It has no disk of its own.
    pub fn fill_disk(&self) {
        self.disk.as_ref().expect("it is on a disk of its own").fill();
    }

    /// Frees what [`Self::fill_disk`] filled.
    ///
    /// # Panics
    /// The disk was not filled.
    pub fn free_disk(&self) {
        self.disk.as_ref().expect("it is on a disk of its own").free();
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
        if running.as_ref().is_none_or(|server| !process::is_alive(server.pid())) {
            *running = Some(EmbeddedPostgres::start(self.options.clone()).await.expect("Postgres starts"));
        }
    }

    /// Suspends the processes that serve connections with this `application_name`, until the result is dropped: they
    /// keep their locks and answer nothing. Others, and new ones, are served.
    ///
    /// # Panics
    /// The server does not run.
    pub async fn suspend_backends(&self, pool: &PgPool, application_name: &str) -> SuspendedBackends {
        let backends: Vec<i32> = sqlx::query_scalar(
            "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND backend_type = 'client backend'",
        )
        .bind(application_name)
        .fetch_all(pool)
        .await
        .expect("Postgres answers");
        let backends = SuspendedBackends(backends.into_iter().map(Pid::from_raw).collect());
        backends.signal(Signal::SIGSTOP);
        backends
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

/// Processes of Postgres that are suspended; they go on when this is dropped.
#[derive(Debug)]
pub struct SuspendedBackends(Vec<Pid>);

impl SuspendedBackends {
    fn signal(&self, signal: Signal) {
        for &backend in &self.0 {
            // It may have ended.
            let _ = kill(backend, signal);
        }
    }
}

impl Drop for SuspendedBackends {
    fn drop(&mut self) {
        self.signal(Signal::SIGCONT);
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
