//! The server program: its command line, its log, and how long it may take to become ready.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::process::Child;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::Error;
use crate::pid_file::PidFile;
use crate::process::send_signal;
use crate::progress::Progress;

/// Recovery after a crash replays what was written since the last checkpoint, at most 4 GB.
const START_TIMEOUT: Duration = Duration::from_mins(10);
/// A start that takes longer is reported as recovery.
const REPORT_AFTER: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// A log file of more bytes is rotated at the next start.
const LOG_MAX: u64 = 10 << 20;

/// One start of the server program.
pub(crate) struct Launch<'a> {
    pub(crate) account: &'a Account,
    pub(crate) binaries: &'a Binaries,
    /// The directory given in [`Options`](crate::Options), links resolved.
    pub(crate) directory: &'a Path,
}

impl Launch<'_> {
    /// Starts the process; it writes to the log file.
    pub(crate) async fn spawn(&self) -> Result<Child, Error> {
        let path = self.log_file();
        if path.metadata().is_ok_and(|log| log.len() > LOG_MAX) {
            let _ = std::fs::rename(&path, self.directory.join("postgres.log.1"));
        }
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::file("can't open", &path))?;
        let compression = if self.supports_lz4().await { "lz4" } else { "on" };
        let postgres = self.binaries.postgres();
        self.command()
            .arg("-c")
            .arg(format!("wal_compression={compression}"))
            .stdout(log.try_clone().map_err(Error::file("can't open", &path))?)
            .stderr(log)
            .spawn()
            .map_err(Error::file("can't run", &postgres))
    }

    /// Whether the binaries were built with lz4.
    async fn supports_lz4(&self) -> bool {
        let mut command = self.command();
        command.args(["-c", "wal_compression=lz4", "-C", "wal_compression"]);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().await;
        status.is_ok_and(|status| status.success())
    }

    fn command(&self) -> tokio::process::Command {
        let mut command = self.account.command(&self.binaries.postgres());
        let file = |name: &str, path: PathBuf| format!("{name}={}", path.display());
        command
            .arg("-D")
            .arg(self.directory.join("data"))
            .arg("-c")
            .arg(file("config_file", self.directory.join("postgresql.conf")))
            .arg("-c")
            .arg(file("hba_file", self.directory.join("pg_hba.conf")))
            .arg("-c")
            .arg(file("ident_file", self.directory.join("data/pg_ident.conf")));
        command
    }

    /// Returns when the server accepts connections.
    pub(crate) async fn wait_until_ready(
        &self,
        child: &mut Child,
        pid: u32,
        progress: Progress,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let mut reported = false;
        loop {
            if PidFile::read(&self.directory.join("data")).is_some_and(|file| file.pid == pid && file.ready) {
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(self.failed(status.to_string()));
            }
            if started.elapsed() > START_TIMEOUT {
                send_signal(pid, Signal::SIGQUIT);
                return Err(self.failed(format!("not ready after {} s", START_TIMEOUT.as_secs())));
            }
            if !reported && started.elapsed() > REPORT_AFTER {
                reported = true;
                progress("Postgres is recovering");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The error for a server that did not become ready.
    pub(crate) fn failed(&self, reason: String) -> Error {
        Error::StartFailed { reason, log: self.log_file() }
    }

    fn log_file(&self) -> PathBuf {
        self.directory.join("postgres.log")
    }
}
