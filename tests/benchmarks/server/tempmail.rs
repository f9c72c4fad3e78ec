//! `tempmail up`, and reading back over `/v1` what it accepted.

use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::{command_without_output, free_port};
use crate::http::HttpClient;

/// Which binary to start.
#[derive(Debug, Clone)]
pub struct Tempmail {
    /// Its path.
    pub program: PathBuf,
}

/// How to read from a running `tempmail up`.
#[derive(Debug)]
pub struct MailReader {
    http: SocketAddr,
    output: PathBuf,
    credentials: PathBuf,
}

impl Tempmail {
    /// The command over one data directory, with a request rate that lets every mail be read
    /// back. Nothing of SMTP or storage is set.
    pub(super) fn command(
        &self,
        smtp: SocketAddr,
        directory: &Path,
    ) -> anyhow::Result<(Command, MailReader)> {
        let (http, admin) = (free_port()?, free_port()?);
        let data = directory.join("tempmail");
        let output = directory.join(format!("tempmail-{}.out", smtp.port()));
        let errors = OpenOptions::new().create(true).append(true).open(directory.join("tempmail.log"))?;
        let mut command = command_without_output(&self.program);
        command
            .arg("up")
            .arg("--data-dir")
            .arg(&data)
            .args(["--smtp", &smtp.to_string()])
            .args(["--http", &http.to_string()])
            .args(["--admin", &admin.to_string()])
            .env("TEMPMAIL_LIMITS__V1_PER_SECOND", "1000000")
            .stdout(File::create(&output)?)
            .stderr(errors);
        Ok((command, MailReader { http, output, credentials: data.join("credentials.json") }))
    }
}

impl MailReader {
    /// Waits for the line `ready`.
    pub(super) async fn wait_ready(&self, limit: Duration) -> anyhow::Result<()> {
        let started = Instant::now();
        while !fs::read_to_string(&self.output)?.lines().any(|line| line.trim() == "ready") {
            ensure!(started.elapsed() < limit, "tempmail up prints no `ready`");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Reads every one of the addresses and expects one mail in each.
    ///
    /// # Errors
    /// Some address has none or more: mail was lost or doubled.
    pub async fn verify(&self, addresses: impl Iterator<Item = String>) -> anyhow::Result<usize> {
        let credentials: Value = serde_json::from_str(&fs::read_to_string(&self.credentials)?)?;
        let token = credentials["live_token"].as_str().context("credentials.json has no live_token")?;
        let mut client = HttpClient::connect(self.http).await?;
        let mut read = 0;
        for address in addresses {
            let target = format!("/v1/inbox/{address}?limit=50");
            let answer = tokio::time::timeout(Duration::from_secs(5), client.get(&target, token))
                .await
                .with_context(|| format!("after {read} mails that are there, one is missing"))??;
            ensure!(answer.status == 200, "/v1/inbox answered {} after {read} mails", answer.status);
            let body: Value = serde_json::from_slice(&answer.body)?;
            let found = body["emails"].as_array().map_or(0, Vec::len);
            ensure!(found == 1, "an address that got one mail has {found}");
            read += 1;
        }
        Ok(read)
    }
}
