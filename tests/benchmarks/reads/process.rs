//! The servers that are read from: the program as `tempmail api`, and nginx.

use std::fs::{self, File, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempmail_runtime::config::Key;
use tokio::process::Child;

use super::Read;
use super::stored::Stored;
use crate::http::Client;
use crate::server::{cpu, free_port, quiet};

/// How long a server may take to answer.
const START: Duration = Duration::from_secs(60);
/// How long it may take to stop.
const STOP: Duration = Duration::from_secs(35);

/// A server that answers HTTP.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Where it answers.
    pub http: SocketAddr,
}

impl Process {
    /// Starts `tempmail api` over a database.
    ///
    /// # Errors
    /// It does not get ready.
    pub async fn tempmail(program: &Path, stored: &Stored, directory: &Path) -> anyhow::Result<Self> {
        let (http, admin) = (free_port()?, free_port()?);
        let log = directory.join(format!("api-{}.log", http.port()));
        let mut command = quiet(program);
        command
            .arg("api")
            .env("TEMPMAIL_POSTGRES__URL", &stored.url)
            .env("TEMPMAIL_HTTP__LISTEN", http.to_string())
            .env("TEMPMAIL_HTTP__UNLIMITED_NETWORKS", "127.0.0.0/8")
            .env("TEMPMAIL_ADMIN__LISTEN", admin.to_string())
            .env("TEMPMAIL_LIMITS__V1_PER_SECOND", "1000000")
            .env("TEMPMAIL_LIMITS__API_PER_SECOND", "1000000")
            .env("TEMPMAIL_JWT__KEYS", keys(&stored.config.jwt.keys))
            .env("TEMPMAIL_SECRETS__KEYS", keys(&stored.config.secrets.keys))
            .stderr(File::create(&log)?);
        let child = command.spawn().context("tempmail can't be started")?;
        let mut process = Self { child, http };
        process.answers(admin, "/readyz").await.with_context(|| format!("see {}", log.display()))?;
        Ok(process)
    }

    /// Starts nginx with a file for each kind of read, of the octets of that read's answer.
    ///
    /// # Errors
    /// It does not start.
    pub async fn nginx(program: &Path, files: &[(Read, Vec<u8>)], directory: &Path) -> anyhow::Result<Self> {
        let http = free_port()?;
        let root = directory.join("files");
        fs::create_dir(&root)?;
        fs::set_permissions(&root, Permissions::from_mode(0o755))?;
        for (read, octets) in files {
            let file = root.join(read.file());
            fs::write(&file, octets)?;
            fs::set_permissions(&file, Permissions::from_mode(0o644))?;
        }
        let config = directory.join("nginx.conf");
        fs::write(&config, nginx_config(http, directory, &root))?;
        let mut command = quiet(program);
        command.arg("-c").arg(&config).arg("-p").arg(directory);
        command.stderr(File::create(directory.join("nginx.out"))?);
        let child = command.spawn().with_context(|| {
            format!(
                "{} can't be started: `apt-get install nginx-light`, or name one by NGINX",
                program.display()
            )
        })?;
        let mut process = Self { child, http };
        process.answers(http, &format!("/{}", Read::Inbox.file())).await?;
        Ok(process)
    }

    /// Waits until `path` at `authority` is answered with 200.
    async fn answers(&mut self, authority: SocketAddr, path: &str) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            if let Ok(mut client) = Client::connect(authority).await
                && let Ok(answer) = client.get(path, "none").await
                && answer.status == 200
            {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended: {status}");
            }
            ensure!(started.elapsed() < START, "it does not get ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Processor time that it and its children used so far.
    pub fn cpu(&self) -> Duration {
        self.child.id().map(cpu::of_tree).unwrap_or_default()
    }

    /// Asks it to stop and waits until it has; kills it where it does not.
    ///
    /// # Errors
    /// The operating system refuses.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.terminate();
        if tokio::time::timeout(STOP, self.child.wait()).await.is_err() {
            self.child.kill().await?;
        }
        Ok(())
    }

    fn terminate(&self) {
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            // It may have ended by itself: then there is nothing to do.
            kill(Pid::from_raw(id), Signal::SIGTERM).ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.terminate();
    }
}

fn keys(keys: &[Key]) -> String {
    let keys: Vec<_> =
        keys.iter().map(|key| json!({ "kid": key.kid, "secret": key.secret.expose() })).collect();
    serde_json::Value::from(keys).to_string()
}

/// As fast as it can: no log, files kept open, connections kept for ever.
fn nginx_config(http: SocketAddr, directory: &Path, root: &Path) -> String {
    let (directory, root) = (directory.display(), root.display());
    format!(
        "daemon off;
worker_processes auto;
pid {directory}/nginx.pid;
error_log {directory}/nginx.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    open_file_cache max=100;
    default_type application/json;
    client_body_temp_path {directory}/nginx-body;
    proxy_temp_path {directory}/nginx-proxy;
    fastcgi_temp_path {directory}/nginx-fastcgi;
    uwsgi_temp_path {directory}/nginx-uwsgi;
    scgi_temp_path {directory}/nginx-scgi;
    server {{
        listen {http};
        root {root};
    }}
}}
"
    )
}
