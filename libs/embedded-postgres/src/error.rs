//! Why a private server did not start: sentences for the person at the terminal.

use std::io;
use std::path::{Path, PathBuf};

/// Why a private server did not start or stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process holds the directory.
    #[error("{directory} is already in use by another process{}", pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// Its holder, if it left its number.
        pid: Option<u32>,
    },
    /// A file operation failed.
    #[error("{action} {path}: {source}")]
    File {
        /// What was tried, such as "can't read".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The data was made by a version whose binaries are not here.
    #[error(
        "{directory} was made by PostgreSQL {major}, but no PostgreSQL {major} is installed: \
         install it (on Debian: postgresql-{major}) or choose another data directory"
    )]
    VersionNotInstalled {
        /// The data directory.
        directory: PathBuf,
        /// The major version that made it.
        major: u32,
    },
    /// The user that Postgres runs as can't enter a directory on the way to its data.
    #[error(
        "Postgres runs as user {user}, which may not enter {directory}: choose a data directory \
         elsewhere or allow others to enter it (chmod o+x)"
    )]
    DirectoryNotAccessible {
        /// The user.
        user: String,
        /// The first directory that is closed to it.
        directory: PathBuf,
    },
    /// Root, and the system has no user to run Postgres as.
    #[error("as root, Postgres needs a user `postgres` or `nobody` to run as, and there is neither")]
    NoUser,
    /// There is no download for this machine.
    #[error(
        "no PostgreSQL 15 or newer is installed, and there is none to download for {0}: install PostgreSQL"
    )]
    NoDownload(String),
    /// The download did not work.
    #[error("PostgreSQL could not be downloaded ({0}): install PostgreSQL, or try again")]
    DownloadFailed(String),
    /// What was downloaded is not what this program expects.
    #[error("the downloaded PostgreSQL archive has SHA-256 {found}, not {expected}: it was not used")]
    ChecksumMismatch {
        /// What the download has.
        found: String,
        /// What is pinned.
        expected: &'static str,
    },
    /// The data is there and its password is not.
    #[error("{0} is missing, without which the data beside it can't be opened")]
    PasswordMissing(PathBuf),
    /// The operating system gives no randomness.
    #[error("the operating system gives no randomness")]
    NoRandomness,
    /// Nobody runs the server of a directory.
    #[error("no Postgres runs in {0}")]
    NotRunning(PathBuf),
    /// `initdb` failed.
    #[error("initdb failed: {0}")]
    InitdbFailed(String),
    /// The server ended instead of becoming ready.
    #[error("Postgres did not start ({reason}); its log is {log}")]
    StartFailed {
        /// How it ended.
        reason: String,
        /// Its log file.
        log: PathBuf,
    },
    /// Processes of a former server would not end.
    #[error("Postgres processes of a former run still use {0} and do not end")]
    StillRunning(PathBuf),
}

impl Error {
    /// For `map_err` on a file operation.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
