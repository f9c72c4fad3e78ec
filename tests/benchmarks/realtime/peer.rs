//! Others that push to many: Centrifugo over WebSockets, Mercure over server-sent events. Both keep
//! what is published in memory, and take it over HTTP.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;
use tempmail_tests::port::free_port;

use super::subscriber::{Subscription, WebSocketProtocol};
use crate::http::HttpClient;
use crate::mail::SUBJECT;
use crate::process::ServerProcess;
use crate::server::command_without_output;

/// The key of either: they serve this run alone.
const KEY: &str = "a key of a benchmark that serves nothing else";

/// One of them, by its program's path.
#[derive(Debug, Clone)]
pub enum Peer {
    /// <https://centrifugal.dev>
    Centrifugo(PathBuf),
    /// <https://mercure.rocks>
    Mercure(PathBuf),
}

/// One that runs.
#[derive(Debug)]
pub struct RunningPeer {
    /// Its process.
    pub process: ServerProcess,
    /// How to publish to it.
    pub publisher: Publisher,
}

/// How to publish.
#[derive(Debug, Clone)]
pub struct Publisher {
    /// Where it answers.
    pub http: SocketAddr,
    target: &'static str,
    content_type: &'static str,
    credential: String,
}

impl Peer {
    /// What tables call it, and its subscribers.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Centrifugo(_) => "Centrifugo WebSocket",
            Self::Mercure(_) => "Mercure SSE",
        }
    }

    /// Starts it with its files in `directory`.
    ///
    /// # Errors
    /// It does not get ready.
    pub async fn start(&self, directory: &Path) -> anyhow::Result<RunningPeer> {
        match self {
            Self::Centrifugo(program) => centrifugo(program, directory).await,
            Self::Mercure(program) => mercure(program, directory).await,
        }
    }

    /// How a subscriber waits.
    pub fn subscription(&self, number: u32) -> Subscription {
        match self {
            Self::Centrifugo(_) => Subscription::WebSocket(WebSocketProtocol {
                target: "/connection/websocket",
                first_message: format!(
                    "{{\"id\":1,\"connect\":{{}}}}\n{{\"id\":2,\"subscribe\":{{\"channel\":\"c{number}\"}}}}"
                ),
                confirmation: "\"id\":2",
                echo: Some("{}"),
                missed: None,
            }),
            Self::Mercure(_) => {
                Subscription::Stream { target: format!("/.well-known/mercure?topic=c{number}") }
            }
        }
    }
}

impl Publisher {
    /// Publishes one notification of about the size of ours.
    ///
    /// # Errors
    /// It is refused.
    pub async fn publish(
        &self,
        client: &mut HttpClient,
        number: usize,
        subscriber: u32,
    ) -> anyhow::Result<()> {
        let data = json!({
            "type": "new_email",
            "id": "01980a5e-4a6c-7c30-9f5d-5b1d2f3c4a5b",
            "from_email": "sender@bench.example",
            "subject": format!("{SUBJECT}{number}"),
            "preview_text": "a preview of about a hundred characters ".repeat(2),
            "created_at": "2026-11-21T10:00:00.000Z",
        });
        let body = if self.content_type == "application/json" {
            json!({"channel": format!("c{subscriber}"), "data": data}).to_string()
        } else {
            format!("topic=c{subscriber}&data={data}")
        };
        let answer = client.send_as(self.content_type, "POST", self.target, &self.credential, &body).await?;
        ensure!(answer.status == 200, "a publication was answered {}", answer.status);
        Ok(())
    }
}

async fn centrifugo(program: &Path, directory: &Path) -> anyhow::Result<RunningPeer> {
    let http = free_port();
    let config = directory.join("centrifugo.json");
    let settings = json!({
        "http_server": {"address": "127.0.0.1", "port": http.port().to_string()},
        "log": {"level": "error"},
        "health": {"enabled": true},
        "http_api": {"key": KEY},
        "client": {"insecure": true, "allowed_origins": ["*"]},
        "channel": {"without_namespace": {"allow_subscribe_for_client": true}},
    });
    fs::write(&config, settings.to_string())?;
    let mut command = command_without_output(program);
    command.arg("--config").arg(&config);
    let mut process = ServerProcess::start("centrifugo", command, directory)?;
    process.wait_until_answering(http, "/health").await?;
    let (target, content_type) = ("/api/publish", "application/json");
    let publisher = Publisher { http, target, content_type, credential: format!("X-API-Key: {KEY}") };
    Ok(RunningPeer { process, publisher })
}

async fn mercure(program: &Path, directory: &Path) -> anyhow::Result<RunningPeer> {
    let http = free_port();
    let config = directory.join("Caddyfile");
    let settings = format!(
        "{{\n admin off\n auto_https off\n log {{\n  level ERROR\n }}\n}}\n\
         http://{http} {{\n mercure {{\n  transport local\n  anonymous\n  publisher_jwt \"{KEY}\"\n }}\n \
         respond /ready 200\n}}\n"
    );
    fs::write(&config, settings)?;
    let mut command = command_without_output(program);
    command.arg("run").arg("--config").arg(&config).env("HOME", directory);
    let mut process = ServerProcess::start("mercure", command, directory)?;
    process.wait_until_answering(http, "/ready").await?;
    let claims = json!({"mercure": {"publish": ["*"]}});
    let jwt = encode(&Header::default(), &claims, &EncodingKey::from_secret(KEY.as_bytes()))?;
    let credential = format!("Authorization: Bearer {jwt}");
    let (target, content_type) = ("/.well-known/mercure", "application/x-www-form-urlencoded");
    Ok(RunningPeer { process, publisher: Publisher { http, target, content_type, credential } })
}
