//! The data directory and ports of a `tempmail up`.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Binary, program};
use crate::contract::ValidatedServer;
use crate::port::free_port;

/// The data directory and ports of one `tempmail up`, which a test may start several times.
#[derive(Debug)]
pub struct UpInstallation {
    directory: tempfile::TempDir,
    _validated: ValidatedServer,
    /// SMTP listener.
    pub smtp: SocketAddr,
    /// HTTP listener.
    pub http: SocketAddr,
    /// Probes and metrics.
    pub admin: SocketAddr,
}

impl UpInstallation {
    /// An empty data directory and free ports.
    ///
    /// # Panics
    /// There are no free ports.
    pub fn new() -> Self {
        // If the test is root, Postgres runs as another user, who needs to traverse the directory.
        let directory = tempfile::Builder::new()
            .prefix("tempmail-up-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a directory can be made");
        let http = free_port();
        Self {
            directory,
            _validated: ValidatedServer::new(http),
            smtp: free_port(),
            http,
            admin: free_port(),
        }
    }

    /// The value of `--data-dir`.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// `credentials.json`.
    ///
    /// # Panics
    /// It does not exist.
    pub fn credentials(&self) -> Value {
        let text = fs::read(self.data_dir().join("credentials.json")).expect("credentials.json is there");
        serde_json::from_slice(&text).expect("credentials.json is JSON")
    }

    /// The command `tempmail up` with this data directory.
    pub fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.arg("up").arg("--data-dir").arg(self.data_dir());
        command.arg("--smtp").arg(self.smtp.to_string());
        command.arg("--http").arg(self.http.to_string());
        command.arg("--admin").arg(self.admin.to_string());
        command
    }

    /// Starts it and waits for `ready`.
    ///
    /// # Panics
    /// It exits or hangs instead.
    pub fn up(&self, environment: &[(&str, &str)]) -> Binary {
        self.up_with(&[], environment)
    }

    /// The same with further arguments.
    ///
    /// # Panics
    /// It exits or hangs instead.
    pub fn up_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Binary {
        let mut command = self.command();
        command.args(arguments).envs(environment.iter().copied());
        let mut binary = Binary::spawn(command);
        binary.wait_for_line("ready");
        binary
    }

    /// All files except the data of Postgres: logs, credentials, locks.
    pub fn plain_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect_files(&self.data_dir(), &mut files);
        files
    }
}

impl Default for UpInstallation {
    fn default() -> Self {
        Self::new()
    }
}

fn collect_files(directory: &Path, files: &mut Vec<PathBuf>) {
    if directory.join("PG_VERSION").exists() {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            collect_files(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}
