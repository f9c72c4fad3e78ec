//! PgBouncer before the shared Postgres.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use nix::unistd::{Uid, User, geteuid};
use tokio::net::TcpStream;

use super::directory::ServerDirectory;
use super::migration::url_for;
use crate::fleet::Role;
use crate::port::free_port;
use crate::tls::TestCertificate;
use crate::wait::eventually;

/// Debian's package installs it there, which is not on every user's PATH.
const PROGRAM: &str = "/usr/sbin/pgbouncer";
/// Waits until the test process, which holds the other end of standard input, ends.
const CLEAN_UP: &str = "read -r _; kill -KILL $1";

/// What a connection to Postgres is given to a client for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// A session: tempmail works with it.
    Sessions,
    /// A transaction: the next one may have another connection.
    Transactions,
}

/// See the module.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    server: Child,
    clean_up: Child,
    _alive: ChildStdin,
    _directory: ServerDirectory,
}

impl PgBouncer {
    /// Starts it in session mode on a free port of loopback, and returns when it accepts connections. With a certificate
    /// it accepts them over TLS only.
    ///
    /// # Panics
    /// It is not installed (Debian's `pgbouncer`), or does not start.
    pub async fn start(certificate: Option<&TestCertificate>) -> Self {
        Self::start_with(PoolMode::Sessions, certificate).await
    }

    /// Starts it in this mode, without TLS.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn start_pooling(mode: PoolMode) -> Self {
        Self::start_with(mode, None).await
    }

    async fn start_with(mode: PoolMode, certificate: Option<&TestCertificate>) -> Self {
        let mode = match mode {
            PoolMode::Sessions => "session",
            PoolMode::Transactions if knows_prepared_statements() => {
                "transaction\nmax_prepared_statements = 0"
            }
            PoolMode::Transactions => "transaction",
        };
        let postgres = tokio::task::spawn_blocking(super::server).await.expect("the server starts");
        let (directory, port) = (ServerDirectory::create(), free_port().port());
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("a file can be written");
            // It runs as the user of Postgres.
            fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("our own file");
            path.to_str().expect("the path is text").to_owned()
        };
        let socket = postgres.socket_directory();
        let mut settings = format!(
            "[databases]\n* = host={} port=5432\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\npool_mode = {mode}\n\
             max_client_conn = 400\ndefault_pool_size = 100\n",
            socket.display(),
            write("users", &users()),
        );
        if let Some(certificate) = certificate {
            let copy = |name, path| write(name, &fs::read_to_string(path).expect("it can be read"));
            let (chain, key) = (certificate.cert_path(), certificate.key_path());
            settings += &format!(
                "client_tls_sslmode = require\nclient_tls_cert_file = {}\nclient_tls_key_file = {}\n",
                copy("cert.pem", chain),
                copy("key.pem", key),
            );
        }
        let mut command = Command::new(PROGRAM);
        command.arg("--quiet");
        if geteuid().is_root() {
            let owner = Uid::from_raw(socket.metadata().expect("the socket is there").uid());
            let user = User::from_uid(owner).ok().flatten().expect("the user of Postgres has a name");
            command.args(["--user", &user.name]);
        }
        command.arg(write("pgbouncer.ini", &settings)).process_group(0);
        let server = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = server.expect("Debian's `pgbouncer` is installed");
        let mut clean_up = Command::new("sh");
        clean_up.args(["-c", CLEAN_UP, "sh", &server.id().to_string()]).process_group(0);
        let mut clean_up = clean_up.stdin(Stdio::piped()).spawn().expect("sh starts");
        let alive = clean_up.stdin.take().expect("standard input is a pipe");
        eventually("PgBouncer accepts connections", || async {
            TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        Self { port, server, clean_up, _alive: alive, _directory: directory }
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.clean_up] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether this PgBouncer (1.21 and later) can follow prepared statements in transaction mode, and so has a setting that
/// says that it does not.
fn knows_prepared_statements() -> bool {
    let version = Command::new(PROGRAM).arg("--version").output().expect("Debian's `pgbouncer` is installed");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let minor = version
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("PgBouncer 1.")?.split('.').next()?.parse().ok());
    minor.is_some_and(|minor: u32| minor >= 21)
}

/// The file with the passwords of the roles' logins.
fn users() -> String {
    let roles = [Role::Api, Role::Ingest, Role::Worker, Role::Operator];
    let lines = roles.map(|role| {
        let url = url_for(role, "@");
        let login = url.trim_start_matches("postgres://").trim_end_matches('@');
        let (name, password) = login.split_once(':').expect("the URL has a name and a password");
        format!("\"{name}\" \"{password}\"\n")
    });
    lines.concat()
}
