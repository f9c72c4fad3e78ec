//! `tempmail check`: whether mail that goes in over SMTP comes out over HTTP.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use reqwest::{Client, Method, Response, Url};
use serde_json::{Value, json};
use tempmail_model::chance;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::output;

/// Time between two attempts of a step.
const RETRY: Duration = Duration::from_secs(1);
/// Octets of the replies of an SMTP session that are read.
const REPLIES_MAX: u64 = 64 << 10;

/// Where tempmail is, and how long the check may take.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Where SMTP is served
    #[arg(long, value_name = "HOST:PORT", default_value = "localhost:2525")]
    smtp: String,
    /// Where HTTP is served
    #[arg(long, value_name = "URL", default_value = "http://localhost:8080")]
    http: Url,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout_seconds: u64,
}

/// A free mailbox that the check makes and deletes.
struct CheckedMailbox {
    http: Client,
    base: Url,
    address: String,
    jwt: String,
}

/// Makes a free mailbox, sends a mail to it, waits for the mail and deletes the mailbox. Steps are repeated until
/// they succeed or the time is over.
pub(crate) async fn run(args: CheckArgs) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(args.timeout_seconds);
    let subject = format!("tempmail check {}", chance::uuid());
    let mailbox = repeat(deadline, || CheckedMailbox::create(&args.http)).await.context("no mailbox")?;
    output::line(&format!("created {}", mailbox.address))?;
    let checked = async {
        repeat(deadline, || send(&args.smtp, &mailbox.address, &subject))
            .await
            .with_context(|| format!("the mail was not accepted by {}", args.smtp))?;
        output::line("sent a mail over SMTP")?;
        repeat(deadline, || mailbox.find(&subject))
            .await
            .context("the mail was accepted, but not received")?;
        output::line("received it over HTTP")
    };
    let checked = checked.await;
    mailbox.request(Method::DELETE, "/api/me", &Value::Null).await.context("the mailbox was not deleted")?;
    checked
}

/// Repeats a step until it succeeds; after `deadline` its error is returned.
async fn repeat<T, F>(deadline: Instant, mut step: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    loop {
        let failed = match timeout_at(deadline, step()).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => error,
            Err(_) => bail!("no answer in time"),
        };
        if Instant::now() + RETRY >= deadline {
            return Err(failed);
        }
        sleep(RETRY).await;
    }
}

impl CheckedMailbox {
    async fn create(base: &Url) -> anyhow::Result<Self> {
        let mut mailbox =
            Self { http: Client::new(), base: base.clone(), address: String::new(), jwt: String::new() };
        let domains: Value = mailbox.request(Method::GET, "/api/domains", &Value::Null).await?.json().await?;
        let domain = domains["domains"][0]["domain"].as_str().context("there is no system domain")?;
        mailbox.address = format!("check-{}@{domain}", chance::uuid().simple());
        let account = json!({"address": mailbox.address, "password": Uuid::new_v4().to_string()});
        let created: Value = mailbox.request(Method::POST, "/api/accounts", &account).await?.json().await?;
        created["token"].as_str().context("the mailbox has no token")?.clone_into(&mut mailbox.jwt);
        Ok(mailbox)
    }

    /// Sends a request, with a JSON body unless that is null.
    async fn request(&self, method: Method, path: &str, body: &Value) -> anyhow::Result<Response> {
        let mut request = self.http.request(method.clone(), self.base.join(path)?);
        if !self.jwt.is_empty() {
            request = request.bearer_auth(&self.jwt);
        }
        if !body.is_null() {
            request = request.json(body);
        }
        let response = request.send().await?;
        ensure!(response.status().is_success(), "{method} {path}: {}", response.status());
        Ok(response)
    }

    async fn find(&self, subject: &str) -> anyhow::Result<()> {
        let listed: Value = self.request(Method::GET, "/api/messages", &Value::Null).await?.json().await?;
        let mut messages = listed["messages"].as_array().into_iter().flatten();
        ensure!(messages.any(|message| message["subject"] == subject), "{} is empty", self.address);
        Ok(())
    }
}

/// Sends a mail over SMTP.
async fn send(server: &str, recipient: &str, subject: &str) -> anyhow::Result<()> {
    let stream = TcpStream::connect(server).await?;
    let (reader, mut writer) = tokio::io::split(stream);
    let mut replies = BufReader::new(tokio::io::AsyncReadExt::take(reader, REPLIES_MAX)).lines();
    let message = format!("From: check@tempmail.invalid\r\nTo: {recipient}\r\nSubject: {subject}\r\n\r\n.");
    for (command, expected) in [
        (String::new(), '2'),
        (String::from("EHLO check.tempmail.invalid\r\n"), '2'),
        (String::from("MAIL FROM:<>\r\n"), '2'),
        (format!("RCPT TO:<{recipient}>\r\n"), '2'),
        (String::from("DATA\r\n"), '3'),
        (format!("{message}\r\n"), '2'),
        (String::from("QUIT\r\n"), '2'),
    ] {
        writer.write_all(command.as_bytes()).await?;
        let reply = loop {
            let line = replies.next_line().await?.context("the server closed the connection")?;
            // A hyphen: further lines follow.
            if line.as_bytes().get(3) != Some(&b'-') {
                break line;
            }
        };
        ensure!(reply.starts_with(expected), "{reply}");
    }
    Ok(())
}
