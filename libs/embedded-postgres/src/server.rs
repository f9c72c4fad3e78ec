//! Starting, watching and stopping the server.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use tokio::process::Child;

use crate::Error;
use crate::account::{Account, make_outer_directory};
use crate::binaries::{Binaries, Search};
use crate::cluster::{self, SUPERUSER};
use crate::leftover::{self, PidFile, pid_of};
use crate::lock::DirectoryLock;
use crate::settings;

/// Told in one line what takes time.
pub type Progress = fn(&str);

/// Recovery after a crash reads what was written since the last checkpoint, at most 4 GB.
const START_PATIENCE: Duration = Duration::from_mins(10);
const STOP_PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(10);
/// A log above this is put aside at the next start.
const LOG_MAX: u64 = 10 << 20;

/// What to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of this server alone; made where it is missing. As root its parents must be
    /// open to other users (execute bit).
    pub directory: PathBuf,
    /// Where downloaded binaries are kept; may be shared by many servers. `directory` is used
    /// in its place where Postgres' user may not enter it.
    pub downloads: PathBuf,
    /// Pass over installed binaries.
    pub skip_installed: bool,
    /// `false` trades durability for speed: for tests.
    pub durable: bool,
    /// Further settings of `postgresql.conf`, over those made here.
    pub settings: Vec<(String, String)>,
    /// Told what takes time, such as a download.
    pub progress: fn(&str),
}

impl Options {
    /// A durable server in `directory`, downloads beside its data.
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

/// A running private server. Dropping it without [`EmbeddedPostgres::stop`] tells it to stop
/// and does not wait.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    child: Child,
    pid: u32,
    major: u32,
    durable: bool,
    socket: PathBuf,
    own_socket_directory: bool,
    password: String,
    _lock: DirectoryLock,
}

impl EmbeddedPostgres {
    /// Starts the server of a directory, making its data where there is none, and returns when
    /// it takes connections.
    ///
    /// # Errors
    /// [`Error::InUse`] where another process runs it; else what failed, in a sentence.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let account = Account::choose()?;
        make_outer_directory(&account, &options.directory)?;
        // Postgres changes its working directory, and /proc shows it with links resolved.
        let directory =
            options.directory.canonicalize().map_err(Error::file("can't find", &options.directory))?;
        account.check_reaches(&directory)?;
        let lock = DirectoryLock::acquire(&directory, "lock")?;

        let data = directory.join("data");
        leftover::clear(&account, &data, options.progress).await?;
        let made_by = cluster::made_by(&data)?;
        let downloads = match account.check_reaches(&options.downloads) {
            Ok(()) => options.downloads.clone(),
            Err(_) => directory.clone(),
        };
        let binaries = Search::new(downloads, options.skip_installed)
            .find(&account, &data, made_by, options.progress)
            .await?;
        let password = cluster::password(&directory.join("password"), made_by.is_some())?;
        if made_by.is_none() {
            (options.progress)("making the database");
            cluster::initialise(&account, &binaries, &directory, &password, options.durable).await?;
        }
        let preferred = directory.join("socket");
        let socket = settings::make_socket_directory(&account, &preferred)?;
        let text = settings::configuration(&socket, options.durable, &options.settings);
        cluster::write(&directory.join("postgresql.conf"), &text, 0o644)?;
        cluster::write(&directory.join("pg_hba.conf"), settings::HBA, 0o644)?;

        let launch = Launch { account: &account, binaries: &binaries, directory: &directory };
        let child = launch.spawn().await?;
        let pid = child.id().ok_or_else(|| launch.not_started("it ended at once".into()))?;
        // From here on whoever gives up waiting drops the server, which stops it.
        let mut server = Self {
            child,
            pid,
            major: binaries.major(),
            durable: options.durable,
            own_socket_directory: socket != preferred,
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

    /// Number of the server's main process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The directory of its socket, which its user alone can enter.
    pub fn socket_directory(&self) -> &Path {
        &self.socket
    }

    /// Returns when the server ends by itself, which it never should.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends all connections, writes a checkpoint, and returns when the server is gone.
    pub async fn stop(mut self) {
        let _ = kill(pid_of(self.pid), Signal::SIGINT);
        if tokio::time::timeout(STOP_PATIENCE, self.child.wait()).await.is_err() {
            // What was committed is in the log and is recovered at the next start.
            tracing::warn!("Postgres does not stop, telling it to stop at once");
            let _ = kill(pid_of(self.pid), Signal::SIGQUIT);
            let _ = self.child.wait().await;
        }
    }
}

impl Drop for EmbeddedPostgres {
    fn drop(&mut self) {
        if self.child.id().is_some() {
            let signal = if self.durable { Signal::SIGINT } else { Signal::SIGQUIT };
            let _ = kill(pid_of(self.pid), signal);
        }
        if self.own_socket_directory {
            let _ = std::fs::remove_dir_all(&self.socket);
        }
    }
}

/// What a start needs.
struct Launch<'a> {
    account: &'a Account,
    binaries: &'a Binaries,
    directory: &'a Path,
}

impl Launch<'_> {
    async fn spawn(&self) -> Result<Child, Error> {
        let path = self.log();
        if path.metadata().is_ok_and(|log| log.len() > LOG_MAX) {
            let _ = std::fs::rename(&path, self.directory.join("postgres.log.1"));
        }
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::file("can't open", &path))?;
        let compression = if self.compresses_with_lz4().await { "lz4" } else { "on" };
        let postgres = self.binaries.postgres();
        self.command()
            .arg("-c")
            .arg(format!("wal_compression={compression}"))
            .stdout(log.try_clone().map_err(Error::file("can't open", &path))?)
            .stderr(log)
            .spawn()
            .map_err(Error::file("can't run", &postgres))
    }

    /// Whether these binaries were built with lz4.
    async fn compresses_with_lz4(&self) -> bool {
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

    async fn wait_until_ready(&self, child: &mut Child, pid: u32, progress: Progress) -> Result<(), Error> {
        let begun = Instant::now();
        let mut told = false;
        loop {
            if PidFile::read(&self.directory.join("data")).is_some_and(|file| file.pid == pid && file.ready) {
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(self.not_started(status.to_string()));
            }
            if begun.elapsed() > START_PATIENCE {
                let _ = kill(pid_of(pid), Signal::SIGQUIT);
                return Err(self.not_started(format!("not ready after {} s", START_PATIENCE.as_secs())));
            }
            if !told && begun.elapsed() > Duration::from_secs(2) {
                told = true;
                progress("Postgres is recovering");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn not_started(&self, reason: String) -> Error {
        Error::StartFailed { reason, log: self.log() }
    }

    fn log(&self) -> PathBuf {
        self.directory.join("postgres.log")
    }
}

/// URL of a database of the server with this socket directory.
pub(crate) fn socket_url(socket: &Path, password: &str, database: &str) -> String {
    let host = percent_encoded(&socket.to_string_lossy());
    // The parameter goes over the host before it, which URLs must have beside a user.
    format!("postgres://{SUPERUSER}:{password}@localhost/{database}?host={host}")
}

/// Everything but unreserved characters (RFC 3986) as `%XX`.
fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, octet| {
        if octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(octet));
        } else {
            encoded.push_str(&format!("%{octet:02X}"));
        }
        encoded
    })
}
