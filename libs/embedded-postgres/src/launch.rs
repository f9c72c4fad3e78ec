//! The server program: its settings and command line, its log, and how long it may take to become ready.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::process::Child;

use crate::Progress;
use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::Error;
use crate::process::{PidFile, send_signal};

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

/// `pg_hba.conf`: clients of the socket sign in with the password.
pub(crate) const HBA: &str = "local all all scram-sha-256\n";

/// The settings of every start. Nothing that a client sends may reach the log: no statements, no
/// parameters, and no messages below `LOG`, whose texts quote values.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("unix_socket_permissions", "0700"),
    ("port", "5432"),
    ("password_encryption", "scram-sha-256"),
    ("max_connections", "60"),
    // A query locks every partition of a table.
    ("max_locks_per_transaction", "256"),
    ("effective_cache_size", "1GB"),
    ("work_mem", "8MB"),
    ("maintenance_work_mem", "64MB"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_logical_replication_workers", "0"),
    ("wal_buffers", "16MB"),
    ("min_wal_size", "512MB"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "15min"),
    ("autovacuum_naptime", "15s"),
    ("autovacuum_max_workers", "2"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
    ("log_line_prefix", "%m [%p] "),
    ("log_min_messages", "log"),
    ("log_min_error_statement", "panic"),
    ("log_error_verbosity", "terse"),
    ("log_statement", "none"),
    ("log_min_duration_statement", "-1"),
    ("log_parameter_max_length", "0"),
    ("log_parameter_max_length_on_error", "0"),
    ("log_lock_waits", "off"),
    ("log_temp_files", "-1"),
    ("log_autovacuum_min_duration", "-1"),
];

const DURABLE: &[(&str, &str)] = &[("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on")];
const NOT_DURABLE: &[(&str, &str)] =
    &[("fsync", "off"), ("synchronous_commit", "off"), ("full_page_writes", "off")];

/// A sixteenth of the machine's memory, between 128 MB and 1 GB: enough for an hour of busy mail.
/// Unused pages take no memory.
fn shared_buffers() -> String {
    let kibibytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        total.split_whitespace().next()?.parse::<u64>().ok()
    });
    format!("{}MB", (kibibytes.unwrap_or(0) / 1024 / 16).clamp(128, 1024))
}

/// The text of `postgresql.conf`; `overrides` come last, so they win.
pub(crate) fn configuration(socket: &Path, durable: bool, overrides: &[(String, String)]) -> String {
    let mut text = String::from("# Rewritten at each start. ALTER SYSTEM overrides it.\n");
    let mut set = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
    };
    for (name, value) in SETTINGS.iter().chain(if durable { DURABLE } else { NOT_DURABLE }) {
        set(name, value);
    }
    set("shared_buffers", &shared_buffers());
    set("unix_socket_directories", &socket.to_string_lossy());
    for (name, value) in overrides {
        set(name, value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_win_and_quotes_are_escaped() {
        let overrides = [("fsync".to_owned(), "off".to_owned()), ("a".to_owned(), "it's".to_owned())];
        let text = configuration(Path::new("/s"), true, &overrides);
        assert!(text.find("fsync = 'on'").unwrap() < text.find("fsync = 'off'").unwrap());
        assert!(text.ends_with("a = 'it''s'\n"));
        assert!(text.contains("listen_addresses = ''\n"));
    }
}
