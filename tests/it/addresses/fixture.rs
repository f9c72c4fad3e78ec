//! Checks spellings of addresses on every surface.

use std::collections::BTreeSet;

use serde_json::json;
use tempmail_tests::app::Mailbox;
use tempmail_tests::http::percent;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, Response, SmtpClient, Tenant, smtp};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use Inbox::{Malformed, NotFound, Own, Victim};

/// The answer of `GET /v1/inbox/…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inbox {
    /// The mail of the victim.
    Victim,
    /// Mail to this spelling, and none of the victim.
    Own,
    /// 404.
    NotFound,
    /// 400.
    Malformed,
}
/// A spelling, and the answers to RCPT, `GET /v1/inbox` by the owner of the victim's mailbox and
/// by another tenant, `POST /api/accounts` by the owner, `POST /api/token` with the victim's password.
pub type Row<'a> = (&'a str, &'a str, Inbox, Inbox, u16, u16);

/// A tenant with mailboxes, each with a mail with the subject `secret`, and another tenant.
pub struct InboxFixture {
    pub app: App,
    pub owner: Tenant,
    victims: Vec<Mailbox>,
}

impl InboxFixture {
    pub async fn start(victims: &[&str]) -> Self {
        let app = App::start().await;
        let owner = app.another_tenant("lighthouse").await;
        app.custom_domain(&owner, "xn--bcher-kva.example").await;
        app.custom_domain(&owner, "kiosk.example").await;
        let mut mailboxes = Vec::new();
        for address in victims {
            mailboxes.push(app.mailbox(Some(&owner.pro), address).await);
            app.deliver(address, "secret", "").await;
        }
        Self { app, owner, victims: mailboxes }
    }

    /// Checks every spelling on every surface.
    pub async fn check(&self, rows: &[Row<'_>]) {
        for (spelling, rcpt, ..) in rows {
            assert_eq!(&self.mail(spelling).await, rcpt, "RCPT of {spelling:?}");
        }
        for (spelling, _, by_owner, by_stranger, ..) in rows {
            let path = format!("/v1/inbox/{}", percent(spelling));
            for (live, expected) in [(&self.owner.live, by_owner), (&self.app.tenant.live, by_stranger)] {
                let (status, body) = raw_get(&self.app, &format!("{path}?limit=50"), live).await;
                assert_eq!(answer_of(status, &body, spelling), *expected, "{path}: {body}");
            }
        }
        for (spelling, .., sign_in) in rows {
            let answer = self.sign_in(spelling).await;
            assert_eq!(answer.status, *sign_in, "signing in to {spelling:?}: {}", answer.text());
            if answer.status == 401 {
                answer.assert_api_error(401, "invalid_credentials");
            }
        }
        // Last, since a new mailbox changes the owner of an address.
        for (spelling, .., create, _) in rows {
            let answer = self.app.create_mailbox(Some(&self.owner.pro), spelling, "pass123").await;
            assert_eq!(answer.status, *create, "creating {spelling:?}: {}", answer.text());
            match create {
                400 => answer.assert_api_error(400, "invalid_address"),
                409 => answer.assert_api_error(409, "address_taken"),
                _ => {}
            }
        }
    }

    /// Sends a mail with the spelling in its subject; returns the reply to RCPT.
    pub async fn mail(&self, spelling: &str) -> String {
        let mut client = SmtpClient::connect_with_ehlo(self.app.smtp()).await;
        client.expect_positive("MAIL FROM:<a@client.example> SMTPUTF8").await;
        let rcpt = client.command(&format!("RCPT TO:<{spelling}>")).await;
        if rcpt.is_positive() {
            client.expect_positive("DATA").await;
            let message = smtp::message("a@client.example", &subject(spelling), "");
            client.send(smtp::dot_stuffed(&message)).await;
            assert_eq!(client.reply().await.code, 250, "{spelling}");
        }
        rcpt.status()
    }

    async fn sign_in(&self, spelling: &str) -> Response {
        self.app.sign_in(spelling, &self.victims[0].password).await
    }

    /// The mailboxes have the mail to the spellings of their addresses, and no other.
    pub async fn assert_received_only(&self, rows: &[Row<'_>], is_victims: impl Fn(&Row<'_>) -> bool) {
        let expected: BTreeSet<String> = rows
            .iter()
            .filter(|row| is_victims(row))
            .map(|(spelling, ..)| subject(spelling))
            .chain(["secret".to_owned()])
            .collect();
        let mut got = BTreeSet::new();
        for victim in &self.victims {
            let messages = self.app.messages(victim).await;
            got.extend(messages.iter().map(|message| message["subject"].as_str().unwrap().to_owned()));
        }
        assert_eq!(got, expected);
    }
}

/// A subject with the spelling, in ASCII.
fn subject(spelling: &str) -> String {
    format!("to {}", spelling.escape_default())
}

/// The kind of an answer to `GET /v1/inbox/…`.
pub fn answer_of(status: u16, body: &str, spelling: &str) -> Inbox {
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    match status {
        200 => {
            let emails = body["emails"].as_array().unwrap();
            let subjects: Vec<&str> = emails.iter().filter_map(|email| email["subject"].as_str()).collect();
            if subjects.contains(&"secret") {
                return Victim;
            }
            assert!(subjects.contains(&subject(spelling).as_str()), "{subjects:?}");
            Own
        }
        404 if body == json!({ "error": "not_found" }) => NotFound,
        400 if body == json!({ "error": "invalid_request" }) => Malformed,
        _ => panic!("{status} {body}"),
    }
}

/// A request whose target is sent unchanged; HTTP clients would normalise it.
pub async fn raw_get(app: &App, target: &str, live: &str) -> (u16, String) {
    let mut connection = TcpStream::connect(app.http()).await.unwrap();
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nx-api-token: {live}\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within_deadline("an answer", connection.read_to_string(&mut answer)).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}
