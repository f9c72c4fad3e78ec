//! A client that asks for as much as it can get, and what it does over and over.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::http::Request;
use tempmail_tests::rows::copy_newest_message;
use tempmail_tests::{Fleet, Reply, SmtpClient, Tenant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::time::sleep;
use uuid::Uuid;

/// The client address of the attacker: over HTTP, and in headers of the PROXY protocol.
const HTTP_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const SMTP_ADDRESS: &str = "192.0.2.2";
/// Pause after a refusal: to be refused is not what costs others anything.
const RETRY: Duration = Duration::from_millis(200);
/// Bytes of a mail: a little less than `smtp.max_message_bytes`, since trace fields are added.
const LARGE: usize = 25_000_000;
/// What is asked for at a time.
const AT_ONCE: usize = 32;

/// An attack: what a client does over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attack {
    /// `BDAT` of 25 MB without `LAST`, kept by `NOOP`.
    ParkedData,
    /// Reading a message of 25 MB an octet a second.
    SlowReading,
    /// Requests with well-formed credentials that nobody has.
    UnknownCredentials,
    /// Sign-ins with wrong passwords, to an address that exists and to ones that don't.
    SignIns,
    /// Searches of 10,000 messages for what is in none of them, with all tokens of a tenant.
    Searches,
    /// Codes of a mail that has as many numbers as it can have.
    Extraction,
}

/// The client, with a tenant of its own.
pub(super) struct Attacker {
    smtp: SocketAddr,
    http: SocketAddr,
    client: reqwest::Client,
    tenant: Tenant,
    /// Live tokens of the tenant.
    tokens: Vec<String>,
    /// The attacker's message, if the attack needs one.
    message: Option<Uuid>,
    answers: Mutex<BTreeMap<String, u64>>,
}

impl Attacker {
    /// Prepares an attack: its tenant, tokens and mail.
    pub(super) async fn new(fleet: &Fleet, attack: Attack) -> Self {
        let tenant = fleet.another_tenant("attacker").await;
        let mut tokens = vec![tenant.live.clone()];
        while attack == Attack::Searches && tokens.len() < 19 {
            tokens.push(fleet.token(&tenant, TokenKind::Live).await);
        }
        let client = reqwest::Client::builder().no_proxy().local_address(IpAddr::from(HTTP_ADDRESS));
        let mut attacker = Self {
            smtp: fleet.smtp(0),
            http: fleet.http(0),
            client: client.build().expect("an HTTP client can be built"),
            tenant,
            tokens,
            message: None,
            answers: Mutex::default(),
        };
        let mailbox = fleet.mailbox(Some(&attacker.tenant.pro), "attacker@inbox.localhost").await;
        let mail = match attack {
            Attack::SlowReading => text_and_attachment(),
            Attack::Extraction => numbers(),
            Attack::Searches => b"Subject: found\r\n\r\nsomething\r\n".to_vec(),
            Attack::ParkedData | Attack::UnknownCredentials | Attack::SignIns => return attacker,
        };
        let mut session = SmtpClient::connect_with_ehlo_from(attacker.smtp, SMTP_ADDRESS).await;
        let reply = session.transact("attacker@client.example", &[&mailbox.address], &mail).await;
        assert_eq!(reply.code, 250, "{reply:?}");
        if attack == Attack::Searches {
            copy_newest_message(&fleet.pool, &mailbox.address, 10_000).await;
        }
        attacker.message = fleet.stored_message_ids(&mailbox.address).await.first().copied();
        attacker
    }

    /// Attacks until it is dropped.
    pub(super) async fn attack(&self, attack: Attack) {
        join_all((0..AT_ONCE).map(|number| async move {
            loop {
                if self.attack_once(attack, number).await.is_none() {
                    sleep(RETRY).await;
                }
            }
        }))
        .await;
    }

    /// What it was answered, and how often.
    pub(super) fn answers(&self) -> BTreeMap<String, u64> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `None` where it was refused.
    async fn attack_once(&self, attack: Attack, number: usize) -> Option<()> {
        let get = |path: &str| self.request(Method::GET, path);
        let random = || Uuid::new_v4().simple();
        match attack {
            Attack::ParkedData => self.park(number).await,
            Attack::SlowReading => self.read_slowly(["", "/raw", "/attachments/0"][number % 3]).await,
            Attack::UnknownCredentials if number.is_multiple_of(2) => {
                self.ask(get("/v1/domains").live(&format!("tm_live_{}{}", random(), random()))).await
            }
            Attack::UnknownCredentials => {
                self.ask(get("/pro/api/accounts").bearer(&format!("tm_pro_{}{}", random(), random()))).await
            }
            Attack::SignIns => {
                let unknown = format!("{}@inbox.localhost", random());
                let address =
                    if number.is_multiple_of(2) { "attacker@inbox.localhost" } else { unknown.as_str() };
                let body = json!({ "address": address, "password": "wrong password" });
                self.ask(self.request(Method::POST, "/api/token").json(&body)).await
            }
            Attack::Searches => {
                let token = &self.tokens[number % self.tokens.len()];
                self.ask(get("/v1/me?since=0&subject=nothing").live(token)).await
            }
            Attack::Extraction => {
                let message = self.message.expect("the mail is stored");
                self.ask(get(&format!("/v1/email/{message}/codes")).live(&self.tokens[0])).await
            }
        }
    }

    fn request(&self, method: Method, path: &str) -> Request {
        Request::new(&self.client, method, &format!("http://{}{path}", self.http))
    }

    async fn ask(&self, request: Request) -> Option<()> {
        let Ok(answer) = request.try_send().await else {
            self.record("closed");
            return None;
        };
        self.record(answer.status.to_string());
        (answer.status < 400).then_some(())
    }

    async fn park(&self, number: usize) -> Option<()> {
        let mut session = SmtpClient::connect_from(self.smtp, SMTP_ADDRESS).await;
        let recipient = format!("RCPT TO:<shared{number}@inbox.localhost>");
        for line in ["", "EHLO attacker.example", "MAIL FROM:<attacker@client.example>", &recipient] {
            if !line.is_empty() {
                session.send(format!("{line}\r\n")).await;
            }
            self.replied(&mut session).await?;
        }
        let data = b"All work and no play makes Jack a dull boy.\r\n".repeat(LARGE / 45);
        session.send(format!("BDAT {}\r\n", data.len())).await;
        session.send(&data).await;
        self.replied(&mut session).await?;
        loop {
            sleep(Duration::from_secs(1)).await;
            session.send("NOOP\r\n").await;
            self.replied(&mut session).await?;
        }
    }

    /// `None` where the session is over, or the reply is negative.
    async fn replied(&self, session: &mut SmtpClient) -> Option<()> {
        let reply = session.try_reply().await;
        self.record(reply.as_ref().map_or_else(|| "closed".to_owned(), |reply| reply.status().to_string()));
        reply.filter(Reply::is_positive).map(|_| ())
    }

    async fn read_slowly(&self, rest: &str) -> Option<()> {
        let socket = TcpSocket::new_v4().ok()?;
        socket.set_recv_buffer_size(4_096).ok()?;
        socket.bind((HTTP_ADDRESS, 0).into()).ok()?;
        let mut stream = socket.connect(self.http).await.ok()?;
        let message = self.message.expect("the mail is stored");
        let request = format!(
            "GET /v1/email/{message}{rest} HTTP/1.1\r\nhost: {}\r\nx-api-token: {}\r\n\r\n",
            self.http, self.tokens[0]
        );
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut status = [0; "HTTP/1.1 200".len()];
        stream.read_exact(&mut status).await.ok()?;
        self.record(String::from_utf8_lossy(&status[9..]));
        while stream.read(&mut [0]).await.is_ok_and(|read| read > 0) {
            sleep(Duration::from_secs(1)).await;
        }
        None
    }

    fn record(&self, answer: impl Into<String>) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner).entry(answer.into()).or_default() += 1;
    }
}

/// A large text and a large attachment, so that the message, its data and its attachment are slow to read.
fn text_and_attachment() -> Vec<u8> {
    let head = "From: <attacker@client.example>\r\nSubject: large\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"part\"\r\n\r\n\
         --part\r\nContent-Type: text/plain\r\n\r\n";
    let between =
        "--part\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=\"a.csv\"\r\n\r\n";
    let line = "All work and no play makes Jack a dull boy.\r\n";
    let half = line.repeat((LARGE - 1_024) / 2 / line.len());
    format!("{head}{half}{between}{half}--part--\r\n").into_bytes()
}

/// A mail of 700 KiB of numbers that may be codes.
fn numbers() -> Vec<u8> {
    let head = "From: <attacker@client.example>\r\nSubject: your code\r\n\r\n";
    let line = format!("{}\r\n", "4829;".repeat(150));
    format!("{head}{}", line.repeat((700 << 10) / line.len())).into_bytes()
}
