//! Attacks over HTTP: slow readers, credentials that nobody has, passwords, and pages.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{MissedTickBehavior, interval, sleep};
use uuid::Uuid;

use super::smtp::AttackSession;
use super::store::filled_mailbox;
use super::{Attack, AttackLog, AttackTarget, RETRY, connect, large_mail};
use crate::mailbox::Mailbox;
use crate::rows::SYSTEM_DOMAIN;

/// Slow readers of each kind of answer.
const READERS: usize = 8;
/// Requests at a time of a flood.
const FLOOD: usize = 32;
/// Sign-ins at a time.
const SIGN_INS: usize = 16;
/// Mailboxes whose passwords are reset in turn.
const MAILBOXES: usize = 5;
/// Requests a second of a Pro token.
const PRO_RATE: u32 = 20;
/// Tokens that ask for pages.
const TOKENS: usize = 5;
/// The last page that lists have.
const LAST_PAGE: u32 = 100;

/// A client at the attacker's address.
pub(super) fn client(target: &AttackTarget) -> reqwest::Client {
    let builder =
        reqwest::Client::builder().no_proxy().local_address(IpAddr::from(target.attacker_address()));
    builder.build().expect("an HTTP client can be built")
}

/// Sends a request, reads the answer, and records status and code.
pub(super) async fn count(log: &AttackLog, what: &str, request: RequestBuilder) {
    let Ok(response) = request.send().await else {
        log.record(format!("{what}closed"));
        return sleep(RETRY).await;
    };
    let status = response.status();
    let body = response.bytes().await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let code = body["error"].as_str().map(|code| format!(" {code}")).unwrap_or_default();
    log.record(format!("{what}{}{code}", status.as_u16()));
}

/// Clients that read an octet a second of a message of 25 MB, of its data and of its attachment.
pub(super) struct SlowReaders {
    message: Uuid,
}

impl SlowReaders {
    /// The message is in a mailbox of the attacker.
    pub(super) async fn prepare(target: &AttackTarget) -> Self {
        let address = target.mailbox(Some(&target.attacker.pro), "slow").await.address;
        let log = AttackLog::default();
        let send = async {
            let mut session = AttackSession::open(target, &log).await?;
            session.mail(std::slice::from_ref(&address), &large_mail::text_and_attachment()).await
        };
        assert!(send.await.is_some(), "a large mail is accepted: {log:?}");
        let message = sqlx::query_scalar("SELECT id FROM message WHERE address = $1").bind(&address);
        Self { message: message.fetch_one(&target.pool).await.expect("the mail is stored") }
    }

    async fn read_again_and_again(&self, target: &AttackTarget, log: &AttackLog, rest: &str) {
        loop {
            self.read(target, log, rest).await;
            sleep(RETRY).await;
        }
    }

    async fn read(&self, target: &AttackTarget, log: &AttackLog, rest: &str) -> Option<()> {
        let server = target.listeners.http;
        let mut stream = connect(server, target.attacker_address(), Some(4_096)).await.ok()?;
        let request = format!(
            "GET /v1/email/{}{rest} HTTP/1.1\r\nhost: {server}\r\nx-api-token: {}\r\n\r\n",
            self.message, target.attacker.live
        );
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut status = [0; "HTTP/1.1 200".len()];
        if stream.read_exact(&mut status).await.is_err() {
            log.record("closed");
            return None;
        }
        log.record(String::from_utf8_lossy(&status[9..]));
        // An error is read at this speed, too.
        while stream.read(&mut [0]).await.is_ok_and(|read| read > 0) {
            sleep(Duration::from_secs(1)).await;
        }
        log.record("closed");
        None
    }
}

#[async_trait::async_trait]
impl Attack for SlowReaders {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        let paths = ["", "/raw", "/attachments/0"].into_iter().cycle().take(3 * READERS);
        join_all(paths.map(|rest| self.read_again_and_again(target, log, rest))).await;
    }
}

/// Requests with well-formed credentials that nobody has.
pub(super) struct UnknownCredentials;

impl UnknownCredentials {
    async fn request_again_and_again(target: &AttackTarget, log: &AttackLog, first: usize) {
        let client = client(target);
        for number in first.. {
            let get = |path: &str| client.get(target.url(path));
            let random = || Uuid::new_v4().simple();
            let request = match number % 3 {
                0 => get("/v1/domains").header("x-api-token", format!("tm_live_{}{}", random(), random())),
                1 => get("/pro/api/accounts").bearer_auth(format!("tm_pro_{}{}", random(), random())),
                _ => get("/api/messages").bearer_auth(unknown_jwt()),
            };
            count(log, "", request).await;
        }
    }
}

/// A JWT as ours, signed by nobody.
fn unknown_jwt() -> String {
    let encoded = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let header = json!({ "alg": "HS256", "typ": "JWT", "kid": "jwt" });
    let claims =
        json!({ "aud": "mailbox", "sub": Uuid::new_v4(), "epoch": 0, "iat": 0, "exp": 4_102_444_800_u64 });
    let signature =
        URL_SAFE_NO_PAD.encode([Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat());
    format!("{}.{}.{signature}", encoded(&header), encoded(&claims))
}

#[async_trait::async_trait]
impl Attack for UnknownCredentials {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        join_all((0..FLOOD).map(|first| Self::request_again_and_again(target, log, first))).await;
    }
}

/// Wrong passwords for one known and many unknown addresses.
pub(super) struct SignIns {
    known: String,
}

impl SignIns {
    pub(super) async fn prepare(target: &AttackTarget) -> Self {
        Self { known: target.mailbox(None, "known").await.address }
    }

    async fn sign_in_again_and_again(&self, target: &AttackTarget, log: &AttackLog, first: usize) {
        let client = client(target);
        for number in first.. {
            let unknown = || format!("{}@{SYSTEM_DOMAIN}", Uuid::new_v4().simple());
            let address = if number.is_multiple_of(2) { self.known.clone() } else { unknown() };
            let body = json!({ "address": address, "password": "wrong password" });
            count(log, "", client.post(target.url("/api/token")).json(&body)).await;
        }
    }
}

#[async_trait::async_trait]
impl Attack for SignIns {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        join_all((0..SIGN_INS).map(|first| self.sign_in_again_and_again(target, log, first))).await;
    }
}

/// Password resets of a Pro tenant at the rate of its token, each of which is hashed.
pub(super) struct PasswordResets {
    mailboxes: Vec<Mailbox>,
}

impl PasswordResets {
    pub(super) async fn prepare(target: &AttackTarget) -> Self {
        let mut mailboxes = Vec::new();
        for number in 0..MAILBOXES {
            mailboxes.push(target.mailbox(Some(&target.attacker.pro), &format!("reset{number}")).await);
        }
        Self { mailboxes }
    }

    /// One reset a second, whatever the others wait for.
    async fn reset_again_and_again(
        &self,
        target: &AttackTarget,
        log: &AttackLog,
        client: &reqwest::Client,
        number: usize,
    ) {
        let id = self.mailboxes[number % self.mailboxes.len()].id;
        let path = format!("/pro/api/accounts/{id}/reset-password");
        let mut ticks = paced(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            let request = client.request(Method::PUT, target.url(&path)).bearer_auth(&target.attacker.pro);
            count(log, "", request.json(&json!({ "password": "another horse" }))).await;
        }
    }
}

#[async_trait::async_trait]
impl Attack for PasswordResets {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        let client = client(target);
        let resets =
            (0..PRO_RATE as usize).map(|number| self.reset_again_and_again(target, log, &client, number));
        join_all(resets).await;
    }
}

/// The last pages of a mailbox with 20,000 messages and of all that its tenant owns, in turn, at the rate of five tokens.
pub(super) struct DeepPages {
    mailbox: Mailbox,
    tokens: Vec<String>,
}

impl DeepPages {
    pub(super) async fn prepare(target: &AttackTarget) -> Self {
        let mailbox = filled_mailbox(target).await;
        let tokens = target.tokens(&target.attacker, TokenKind::Pro, TOKENS).await;
        Self { mailbox, tokens }
    }

    async fn request_again_and_again(&self, target: &AttackTarget, log: &AttackLog, token: &str) {
        let client = client(target);
        let of_mailbox = format!("/pro/api/accounts/{}/messages?page={LAST_PAGE}", self.mailbox.id);
        let of_tenant = format!("/pro/api/messages?page={LAST_PAGE}");
        let mut ticks = paced(Duration::from_secs(1) / PRO_RATE);
        for path in [of_mailbox, of_tenant].iter().cycle() {
            ticks.tick().await;
            count(log, "", client.get(target.url(path)).bearer_auth(token)).await;
        }
    }
}

#[async_trait::async_trait]
impl Attack for DeepPages {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        let tokens = self.tokens.iter().map(String::as_str);
        join_all(tokens.map(|token| self.request_again_and_again(target, log, token))).await;
    }
}

/// Ticks that never come faster than the rate, also after a late one.
fn paced(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
