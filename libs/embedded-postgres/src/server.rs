//! Starting, watching and stopping the server.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::process::Child;

use crate::Progress;
use crate::account::{Account, create_outer_directory};
use crate::binaries::Search;
use crate::connection::{self, socket_url};
use crate::directory::{self, DirectoryLock};
use crate::error::Error;
use crate::launch::{self, Launch};
use crate::process::{self, send_signal};

const STOP_TIMEOUT: Duration = Duration::from_mins(1);

/// A running private server. Dropping it without [`EmbeddedPostgres::stop`] signals it to stop and
/// does not wait.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    child: Child,
    pid: u32,
    major: u32,
    durable: bool,
    socket: PathBuf,
    has_temporary_socket: bool,
    password: String,
    _lock: DirectoryLock,
}

impl EmbeddedPostgres {
    /// Starts the server of a directory, creates its data if there is none, and returns when the
    /// server accepts connections.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process runs it; any other [`Error`] says what failed.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let account = Account::choose()?;
        create_outer_directory(&account, &options.directory)?;
        // Postgres changes its working directory, and /proc shows it with links resolved.
        let directory =
            options.directory.canonicalize().map_err(Error::file("can't find", &options.directory))?;
        account.check_access(&directory)?;
        let lock = DirectoryLock::acquire(&directory, "lock")?;

        let data = directory.join("data");
        process::stop_orphans(&account, &data, options.progress).await?;
        let data_major = directory::major_version(&data)?;
        let downloads = match account.check_access(&options.downloads) {
            Ok(()) => options.downloads.clone(),
            Err(_) => directory.clone(),
        };
        let binaries = Search::new(downloads, options.skip_installed)
            .find(&account, &data, data_major, options.progress)
            .await?;
        let password = directory::password(&directory.join("password"), data_major.is_some())?;
        if data_major.is_none() {
            (options.progress)("creating the database");
            directory::create_data(&account, &binaries, &directory, &password, options.durable).await?;
        }
        let preferred = directory.join("socket");
        let socket = connection::create_socket_directory(&account, &preferred)?;
        let text = launch::configuration(&socket, options.durable, &options.settings);
        directory::write(&directory.join("postgresql.conf"), &text, 0o644)?;
        directory::write(&directory.join("pg_hba.conf"), launch::HBA, 0o644)?;

        let launch = Launch { account: &account, binaries: &binaries, directory: &directory };
        let child = launch.spawn().await?;
        let pid = child.id().ok_or_else(|| launch.failed("it exited immediately".into()))?;
        // From here on a caller that stops waiting drops the server, which stops it.
        let mut server = Self {
            child,
            pid,
            major: binaries.major(),
            durable: options.durable,
            has_temporary_socket: socket != preferred,
            socket,
            password,
            _lock: lock,
        };
        launch.wait_until_ready(&mut server.child, pid, options.progress).await?;
        Ok(server)
    }

    /// URL of a database of this server, with the superuser's password in it.
    pub fn connection_url(&self, database: &str) -> String {
        socket_url(&self.socket, &self.password, database)
    }

    /// Process id of the postmaster.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The directory of its socket, which only its user can enter.
    pub fn socket_directory(&self) -> &Path {
        &self.socket
    }

    /// Returns when the server exits by itself, which it never should.
    ///
    /// # Errors
    /// The operating system can't wait for the process.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Closes all connections, writes a checkpoint, and returns when the server has exited.
    pub async fn stop(mut self) {
        send_signal(self.pid, Signal::SIGINT);
        if tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await.is_err() {
            // What was committed is in the write-ahead log and is recovered at the next start.
            tracing::warn!("Postgres did not stop in time, it is shut down immediately");
            send_signal(self.pid, Signal::SIGQUIT);
            let _ = self.child.wait().await;
        }
    }
}

impl Drop for EmbeddedPostgres {
    fn drop(&mut self) {
        if self.child.id().is_some() {
            let signal = if self.durable { Signal::SIGINT } else { Signal::SIGQUIT };
            send_signal(self.pid, signal);
        }
        if self.has_temporary_socket {
            let _ = std::fs::remove_dir_all(&self.socket);
        }
    }
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of this server alone; created if it is missing. For root its parents must be open
    /// to other users (execute bit).
    pub directory: PathBuf,
    /// Where downloaded binaries are kept; several servers may share it. `directory` is used
    /// instead if Postgres' user can't enter it.
    pub downloads: PathBuf,
    /// Ignore installed binaries and use downloaded ones.
    pub skip_installed: bool,
    /// `false` trades durability for speed: for tests.
    pub durable: bool,
    /// Further settings of `postgresql.conf`, which override those made here.
    pub settings: Vec<(String, String)>,
    /// Called for steps that take long.
    pub progress: Progress,
}

impl Options {
    /// A durable server in `directory`, downloads beside its data; progress is logged.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            downloads: directory.clone(),
            directory,
            skip_installed: false,
            durable: true,
            settings: Vec::new(),
            progress: |line| tracing::info!("{line}"),
        }
    }
}
