//! A server process, stopped when dropped.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempmail_runtime::config::{Config, Key};
use tokio::process::{Child, Command};

use crate::http::HttpClient;
use crate::server::{command_without_output, cpu};

/// Longest start of a server.
const START: Duration = Duration::from_secs(60);
/// Longest stop of a server.
const STOP: Duration = Duration::from_secs(35);

/// A running server.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    name: String,
}

/// Resident memory in octets.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Current.
    pub now: u64,
    /// Peak.
    pub peak: u64,
}

impl ServerProcess {
    /// Starts a command whose errors go to a file in `directory`.
    ///
    /// # Errors
    /// There is no such program.
    pub fn start(name: &str, mut command: Command, directory: &Path) -> anyhow::Result<Self> {
        command.stderr(File::create(directory.join(format!("{name}.log")))?);
        let child = command.spawn().with_context(|| format!("{name} can't be started"))?;
        Ok(Self { child, name: name.to_owned() })
    }

    /// Waits until `path` at `authority` is answered with 200.
    ///
    /// # Errors
    /// It ends, or takes longer than a minute.
    pub async fn wait_until_answering(&mut self, authority: SocketAddr, path: &str) -> anyhow::Result<()> {
        let name = self.name.clone();
        self.wait_until(async || {
            let Ok(mut client) = HttpClient::connect(authority).await else { return false };
            client.get(path, "none").await.is_ok_and(|answer| answer.status == 200)
        })
        .await
        .with_context(|| format!("see {name}.log in --work-dir"))
    }

    /// Waits until `probe` returns true.
    ///
    /// # Errors
    /// As [`Self::wait_until_answering`].
    pub async fn wait_until(&mut self, probe: impl AsyncFn() -> bool) -> anyhow::Result<()> {
        let started = Instant::now();
        while !probe().await {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended: {status}", self.name);
            }
            ensure!(started.elapsed() < START, "{} does not get ready", self.name);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Processor time that it and its children used so far.
    pub fn cpu(&self) -> Duration {
        self.child.id().map(cpu::of_tree).unwrap_or_default()
    }

    /// Its memory, without that of its children and without what the kernel holds for it.
    ///
    /// # Errors
    /// It has ended.
    pub fn memory(&self) -> anyhow::Result<Memory> {
        let id = self.child.id().with_context(|| format!("{} has ended", self.name))?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let octets = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            kib.map(|kib| kib << 10).with_context(|| format!("Linux tells no {field}"))
        };
        Ok(Memory { now: octets("VmRSS:")?, peak: octets("VmHWM:")? })
    }

    /// Sends SIGTERM and waits for the exit; kills the process if it takes too long.
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

    /// Sends SIGKILL and waits for the exit.
    ///
    /// # Errors
    /// The operating system refuses.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    fn terminate(&self) {
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            // It may have ended by itself: then there is nothing to do.
            kill(Pid::from_raw(id), Signal::SIGTERM).ok();
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.terminate();
    }
}

/// `tempmail <role>` over the database at `url`, with the keys of `config` and without limits by
/// client or token: there is one client.
pub fn tempmail(program: &Path, role: &str, url: &str, config: &Config) -> Command {
    let mut command = command_without_output(program);
    command
        .arg(role)
        .env("TEMPMAIL_POSTGRES__URL", url)
        .env("TEMPMAIL_HTTP__UNLIMITED_NETWORKS", "127.0.0.0/8")
        .env("TEMPMAIL_SMTP__UNLIMITED_NETWORKS", "127.0.0.0/8")
        .env("TEMPMAIL_LIMITS__V1_PER_SECOND", "1000000")
        .env("TEMPMAIL_LIMITS__API_PER_SECOND", "1000000")
        .env("TEMPMAIL_JWT__KEYS", keys(&config.jwt.keys))
        .env("TEMPMAIL_SECRETS__KEYS", keys(&config.secrets.keys));
    command
}

fn keys(keys: &[Key]) -> String {
    let keys: Vec<_> =
        keys.iter().map(|key| json!({ "kid": key.kid, "secret": key.secret.expose() })).collect();
    serde_json::Value::from(keys).to_string()
}
