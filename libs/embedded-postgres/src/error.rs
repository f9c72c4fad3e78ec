//! Why a private server did not start, in sentences for the terminal.

use std::io;
use std::path::{Path, PathBuf};

/// Why a private server did not start or stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process uses the directory.
    #[error("{directory} is already in use by another process{}", pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// The process that uses it, if it wrote its pid.
        pid: Option<u32>,
    },
    /// A file operation failed.
    #[error("{action} {path}: {source}")]
    File {
        /// What failed, such as "can't read".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The data belongs to a PostgreSQL version that is not installed.
    #[error(
        "{directory} was created by PostgreSQL {major}, but no PostgreSQL {major} is installed: \
         install it (on Debian: postgresql-{major}) or choose another data directory"
    )]
    VersionNotInstalled {
        /// The data directory.
        directory: PathBuf,
        /// Its major version.
        major: u32,
    },
    /// The user that Postgres runs as can't enter a directory on the way to its data.
    #[error(
        "Postgres runs as user {user}, which can't enter {directory}: choose another data directory \
         or let other users enter this one (chmod o+x)"
    )]
    DirectoryNotAccessible {
        /// The user.
        user: String,
        /// The first directory that it can't enter.
        directory: PathBuf,
    },
    /// The process runs as root, and the system has no user to run Postgres as.
    #[error(
        "Postgres can't run as root, and there is no user `postgres` or `nobody`: create one, or start as another user"
    )]
    NoUser,
    /// There is no download for this machine.
    #[error("no PostgreSQL 15 or newer is installed, and there is no download for {0}: install PostgreSQL")]
    NoDownload(String),
    /// The download failed.
    #[error("PostgreSQL could not be downloaded ({0}): install PostgreSQL, or try again")]
    DownloadFailed(String),
    /// The downloaded archive is not the expected one.
    #[error(
        "the downloaded PostgreSQL archive has SHA-256 {found} instead of {expected}, so it was discarded: try again, or install PostgreSQL"
    )]
    ChecksumMismatch {
        /// SHA-256 of the download.
        found: String,
        /// The pinned SHA-256.
        expected: &'static str,
    },
    /// There is data, but the file with its password is missing.
    #[error(
        "{0} is missing, and the data beside it can't be opened without this password: restore the file, or choose another data directory"
    )]
    PasswordMissing(PathBuf),
    /// The operating system provides no randomness.
    #[error("the operating system provides no randomness")]
    NoRandomness,
    /// No server runs in the directory.
    #[error("no Postgres runs in {0}")]
    NotRunning(PathBuf),
    /// `initdb` failed.
    #[error("initdb failed: {0}")]
    InitdbFailed(String),
    /// The server exited instead of becoming ready, or took too long.
    #[error("Postgres did not start ({reason}): see its log {log}")]
    StartFailed {
        /// How it exited.
        reason: String,
        /// Its log file.
        log: PathBuf,
    },
    /// Processes of an earlier server do not end.
    #[error("Postgres processes of an earlier run still use {0} and do not end: stop them, then try again")]
    StillRunning(PathBuf),
}

impl Error {
    /// For `map_err` on a file operation.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
