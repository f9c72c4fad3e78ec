//! A role that may not become ready.

use std::net::SocketAddr;
use std::process::Command;

use super::{Binary, program};
use crate::http;
use crate::port::free_port;
use crate::wait::eventually;

/// `tempmail` with one argument over a database, with no other settings than its ports.
#[derive(Debug)]
pub struct StartingRole {
    /// The process.
    pub process: Binary,
    admin: SocketAddr,
}

impl StartingRole {
    /// Starts it.
    ///
    /// # Panics
    /// There is no such program.
    pub fn start(command: &str, postgres_url: &str) -> Self {
        let admin = free_port();
        let mut process = Command::new(program());
        process.arg(command).env_clear();
        process.env("TEMPMAIL_POSTGRES__URL", postgres_url);
        process.env("TEMPMAIL_ADMIN__LISTEN", admin.to_string());
        process.env("TEMPMAIL_SMTP__LISTEN", free_port().to_string());
        Self { process: Binary::spawn(process), admin }
    }

    /// Waits until the body of `/readyz` contains this.
    ///
    /// # Panics
    /// It does not.
    pub async fn wait_for_readyz(&self, expected: &str) {
        eventually(&format!("/readyz says: {expected}"), || async {
            self.readyz().await?.contains(expected).then_some(())
        })
        .await;
    }

    /// Waits until `/readyz` reports nothing.
    ///
    /// # Panics
    /// It does not.
    pub async fn wait_until_ready(&self) {
        eventually("the role is ready", || async { (self.readyz().await? == "ok\n").then_some(()) }).await;
    }

    async fn readyz(&self) -> Option<String> {
        http::client().get(format!("http://{}/readyz", self.admin)).send().await.ok()?.text().await.ok()
    }
}
