//! What is measured: the real program over a real Postgres, with a Redis between its roles or
//! without one, and a token and a mailbox for each subscriber.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use jiff_sqlx::ToSqlx as _;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;
use tempmail_model::clock::{Clock as _, TestClock};
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_store::{Store, TenantLimits};
use tempmail_tests::port::free_port;
use tempmail_tests::postgres::migrate;
use uuid::Uuid;

use super::SubscriberKind;
use super::subscriber::{Subscription, WebSocketProtocol};
use crate::http::HttpClient;
use crate::process::{ServerProcess, tempmail};
use crate::server::command_without_output;
use crate::stack::{BenchPostgres, DOMAIN, config};

/// How long it may take until a process sees all subscribers.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);

/// The platform under test.
#[derive(Debug)]
pub struct Platform {
    program: PathBuf,
    directory: PathBuf,
    /// Its Postgres.
    pub cluster: BenchPostgres,
    url: String,
    config: Config,
    /// A `tm_live_` token a subscriber.
    tokens: Vec<String>,
    /// A JWT a subscriber, of a mailbox of its own.
    jwts: Vec<String>,
}

/// A process that answers HTTP.
#[derive(Debug)]
pub struct ApiProcess {
    /// The process.
    pub process: ServerProcess,
    /// Where it answers.
    pub http: SocketAddr,
    admin: SocketAddr,
}

/// A Redis that keeps nothing on disk.
#[derive(Debug)]
pub struct Redis {
    /// The process.
    pub process: ServerProcess,
    url: String,
}

impl Platform {
    /// An empty platform for so many subscribers of each kind, with its files in `directory`.
    ///
    /// # Errors
    /// Postgres does not start.
    pub async fn new(program: &Path, directory: &Path, subscribers: u32) -> anyhow::Result<Self> {
        let cluster = BenchPostgres::start(directory).await?;
        let (url, config) = (cluster.create_database("realtime").await?, config()?);
        let store = Store::connect(&url, config.postgres.pool, "tempmail bench")?;
        let clock = TestClock::default();
        migrate(&store).await;
        store.record_free_class(config.retention.free_hours).await?;
        store.add_system_domain(DOMAIN, None, None, clock.now()).await?;
        let defaults = TenantLimits::pro(RetentionClass::PRO);
        let tenant = store.ensure_tenant("bench", &defaults, clock.now()).await?;
        for class in [RetentionClass::FREE, RetentionClass::PRO] {
            for at in [clock.now(), clock.now() + class.partition_width()] {
                store.ensure_message_partition(class, at).await?;
            }
        }
        let tokens = insert_tokens(&store, &clock, tenant, subscribers).await?;
        let mailboxes = insert_mailboxes(&store, &clock, tenant, subscribers).await?;
        let jwts = sign(&config, &clock, &mailboxes)?;
        store.pool().close().await;
        let (program, directory) = (program.to_owned(), directory.to_owned());
        Ok(Self { program, directory, cluster, url, config, tokens, jwts })
    }

    /// Where its files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The address of a subscriber. Mail to the mailboxes of WebSockets may be there from before; the
    /// other addresses are as fresh as `label`.
    pub fn address(kind: SubscriberKind, number: u32, label: &str) -> String {
        match kind {
            SubscriberKind::WebSocket => format!("{number}box@{DOMAIN}"),
            _ => format!("{number}{label}@{DOMAIN}"),
        }
    }

    /// How a subscriber of a kind waits.
    pub fn subscription(&self, kind: SubscriberKind, number: u32, label: &str) -> Subscription {
        let (address, token) = (Self::address(kind, number, label), self.tokens[number as usize].clone());
        match kind {
            SubscriberKind::Kept => Subscription::Kept { target: "/v1/config".into() },
            SubscriberKind::LongPoll => {
                Subscription::LongPoll { target: format!("/v1/inbox/{address}"), token }
            }
            SubscriberKind::Stream => {
                Subscription::Stream { target: format!("/v1/sse/addr?address={address}&token={token}") }
            }
            SubscriberKind::WebSocket => Subscription::WebSocket(WebSocketProtocol {
                target: "/api/ws",
                first_message: json!({"type": "auth", "token": self.jwts[number as usize]}).to_string(),
                confirmation: "auth_ok",
                echo: None,
                missed: Some((
                    "/api/messages",
                    format!("Authorization: Bearer {}", self.jwts[number as usize]),
                )),
            }),
        }
    }

    /// Starts `tempmail api` at `http`.
    ///
    /// # Errors
    /// It does not get ready.
    pub async fn api(&self, http: SocketAddr, redis: Option<&Redis>) -> anyhow::Result<ApiProcess> {
        let mut api = self.spawn_api(http, redis)?;
        api.process.wait_until_answering(api.admin, "/readyz").await?;
        Ok(api)
    }

    /// As [`Self::api`], and does not wait until it is ready.
    ///
    /// # Errors
    /// There is no such program.
    pub fn spawn_api(&self, http: SocketAddr, redis: Option<&Redis>) -> anyhow::Result<ApiProcess> {
        let admin = free_port();
        let mut command = tempmail(&self.program, "api", &self.url, &self.config);
        command
            .env("TEMPMAIL_HTTP__LISTEN", http.to_string())
            .env("TEMPMAIL_ADMIN__LISTEN", admin.to_string());
        if let Some(redis) = redis {
            command.env("TEMPMAIL_REDIS__URL", &redis.url);
        }
        Ok(ApiProcess { process: ServerProcess::start("api", command, &self.directory)?, http, admin })
    }

    /// Starts `tempmail ingest`; also where it takes mail.
    ///
    /// # Errors
    /// It does not get ready.
    pub async fn ingest(&self, redis: Option<&Redis>) -> anyhow::Result<(ServerProcess, SocketAddr)> {
        let (smtp, admin) = (free_port(), free_port());
        let mut command = tempmail(&self.program, "ingest", &self.url, &self.config);
        command
            .env("TEMPMAIL_SMTP__LISTEN", smtp.to_string())
            .env("TEMPMAIL_ADMIN__LISTEN", admin.to_string());
        if let Some(redis) = redis {
            command.env("TEMPMAIL_REDIS__URL", &redis.url);
        }
        let mut process = ServerProcess::start("ingest", command, &self.directory)?;
        process.wait_until_answering(admin, "/readyz").await?;
        Ok((process, smtp))
    }

    /// Starts `tempmail up`, all roles in one process; also where it takes mail.
    ///
    /// # Errors
    /// It does not get ready.
    pub async fn up(&self) -> anyhow::Result<(ApiProcess, SocketAddr)> {
        let (http, smtp, admin) = (free_port(), free_port(), free_port());
        let mut command = tempmail(&self.program, "up", &self.url, &self.config);
        command.arg("--data-dir").arg(self.directory.join("up"));
        for (flag, address) in [("--http", http), ("--smtp", smtp), ("--admin", admin)] {
            command.arg(flag).arg(address.to_string());
        }
        let mut process = ServerProcess::start("up", command, &self.directory)?;
        process.wait_until_answering(admin, "/readyz").await?;
        Ok((ApiProcess { process, http, admin }, smtp))
    }

    /// Starts a Redis.
    ///
    /// # Errors
    /// It does not start.
    pub async fn redis(&self, program: &Path) -> anyhow::Result<Redis> {
        let address = free_port();
        let mut command = command_without_output(program);
        command
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(&self.directory);
        let mut process = ServerProcess::start("redis", command, &self.directory)
            .context("`apt-get install redis-server`, or name one by REDIS_SERVER")?;
        process.wait_until(async || tokio::net::TcpStream::connect(address).await.is_ok()).await?;
        Ok(Redis { process, url: format!("redis://{address}") })
    }
}

impl ApiProcess {
    /// Whether it is ready.
    pub async fn is_ready(&self) -> bool {
        let Ok(mut client) = HttpClient::connect(self.admin).await else { return false };
        client.get("/readyz", "none").await.is_ok_and(|answer| answer.status == 200)
    }

    /// Waits until so many wait, as it sees it.
    ///
    /// # Errors
    /// They don't within two minutes, or it does not answer.
    pub async fn wait_for_subscribers(&self, subscribers: u32) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let there = self.subscribers().await?;
            if there == subscribers {
                return Ok(());
            }
            ensure!(began.elapsed() < CONNECT_TIMEOUT, "{there} wait, not {subscribers}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How many wait, as it sees it.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn subscribers(&self) -> anyhow::Result<u32> {
        let answer = HttpClient::connect(self.admin).await?.get("/metrics", "none").await?;
        let text = String::from_utf8_lossy(&answer.body);
        let gauge = text.lines().find_map(|line| line.strip_prefix("tempmail_subscribers "));
        gauge.unwrap_or("0").trim().parse().context("tempmail_subscribers is no number")
    }
}

async fn insert_tokens(
    store: &Store,
    clock: &TestClock,
    tenant: Uuid,
    count: u32,
) -> anyhow::Result<Vec<String>> {
    let tokens: Vec<PlainToken> =
        (0..count).map(|_| PlainToken::generate(TokenKind::Live)).collect::<Result<_, _>>()?;
    sqlx::query(
        "INSERT INTO api_token (id, tenant, kind, name, hint, hash, created_by, created_at)
         SELECT id, $1, $2, 'bench', hint, hash, 'bench', $3
         FROM unnest($4::uuid[], $5::text[], $6::bytea[]) AS new (id, hint, hash)",
    )
    .bind(tenant)
    .bind(TokenKind::Live.as_str())
    .bind(clock.now().to_sqlx())
    .bind(tokens.iter().map(|_| new_id(clock.now())).collect::<Vec<_>>())
    .bind(tokens.iter().map(|token| token.hint().to_owned()).collect::<Vec<_>>())
    .bind(tokens.iter().map(|token| token.hash().as_bytes().to_vec()).collect::<Vec<_>>())
    .execute(store.pool())
    .await?;
    Ok(tokens.iter().map(|token| token.expose().to_owned()).collect())
}

async fn insert_mailboxes(
    store: &Store,
    clock: &TestClock,
    tenant: Uuid,
    count: u32,
) -> anyhow::Result<Vec<Uuid>> {
    let ids: Vec<Uuid> = (0..count).map(|_| new_id(clock.now())).collect();
    sqlx::query(
        "INSERT INTO mailbox (id, domain, local_part, tenant, quota, password_hash, created_at, seen_at)
         SELECT new.id, domain.id, (number - 1) || 'box', $1, 52428800, 'none', $2, $2
         FROM domain, unnest($3::uuid[]) WITH ORDINALITY AS new (id, number) WHERE name = $4",
    )
    .bind(tenant)
    .bind(clock.now().to_sqlx())
    .bind(&ids)
    .bind(DOMAIN)
    .execute(store.pool())
    .await?;
    Ok(ids)
}

/// JWTs as a sign-in would make them; ten thousand sign-ins would take minutes.
fn sign(config: &Config, clock: &TestClock, mailboxes: &[Uuid]) -> anyhow::Result<Vec<String>> {
    let keys = Keys::from_config(config)?;
    let master = keys.jwt.first().context("there is no key")?;
    let (mut header, now) = (Header::new(Algorithm::HS256), clock.now().as_second());
    header.kid = Some(master.kid().to_owned());
    let key = EncodingKey::from_secret(&master.derive("jwt-mailbox"));
    let sign = |mailbox: &Uuid| {
        let claims = json!({"aud": "mailbox", "sub": mailbox, "epoch": 0, "iat": now, "exp": now + 86_400});
        Ok(encode(&header, &claims, &key)?)
    };
    mailboxes.iter().map(sign).collect()
}
