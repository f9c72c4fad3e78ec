//! Attacks over SMTP that hold what a session may hold: memory, time, and lookups of recipients.

use std::time::Duration;

use futures_util::future::join_all;
use tempmail_model::clock::SystemClock;
use tokio::time::{interval, sleep};
use uuid::Uuid;

use super::{Attack, AttackLog, AttackTarget, RETRY, connect, large_mail};
use crate::rows::insert_system_domain;
use crate::smtp::{Reply, SmtpClient};

/// Sessions that park data: they would hold 750 MB.
const PARKED: usize = 30;
/// Sessions that send slowly: a peer may have 100, of which the victim at the same address needs some.
const SLOW: usize = 90;
/// Sessions that try recipients.
const HARVESTERS: usize = 20;
/// A domain that has neither mailboxes nor shared inboxes.
const EMPTY_DOMAIN: &str = "empty.localhost";

/// A session of the attacker. Each step is `None` once it is refused or closed, which is recorded.
pub(super) struct AttackSession<'a> {
    client: SmtpClient,
    log: &'a AttackLog,
}

impl<'a> AttackSession<'a> {
    /// Connects and sends `EHLO`.
    pub(super) async fn open(target: &AttackTarget, log: &'a AttackLog) -> Option<Self> {
        let Ok(stream) = connect(target.listeners.smtp, target.attacker_address(), None).await else {
            log.record("not connected");
            return None;
        };
        let mut session = Self { client: SmtpClient::from_stream(stream), log };
        session.reply().await?;
        session.command("EHLO attacker.example").await?;
        Some(session)
    }

    /// Sends a line and reads its reply.
    pub(super) async fn command(&mut self, line: &str) -> Option<Reply> {
        self.client.send(format!("{line}\r\n")).await;
        self.reply().await
    }

    /// Begins a mail transaction.
    async fn begin(&mut self, recipients: &[String]) -> Option<()> {
        self.command("MAIL FROM:<attacker@client.example>").await?;
        for recipient in recipients {
            self.command(&format!("RCPT TO:<{recipient}>")).await?;
        }
        Some(())
    }

    /// Sends a chunk of message data.
    async fn chunk(&mut self, data: &[u8], last: &str) -> Option<()> {
        self.client.send(format!("BDAT {}{last}\r\n", data.len())).await;
        self.client.send(data).await;
        let reply = self.reply().await?;
        self.log.record(reply.status());
        Some(())
    }

    /// Sends a mail.
    pub(super) async fn mail(&mut self, recipients: &[String], mail: &[u8]) -> Option<()> {
        self.begin(recipients).await?;
        self.chunk(mail, " LAST").await
    }

    /// Reads a reply, and records it unless it is positive.
    async fn reply(&mut self) -> Option<Reply> {
        let reply = self.client.try_reply().await;
        match &reply {
            None => self.log.record("closed"),
            Some(reply) if !reply.is_positive() => self.log.record(reply.status()),
            Some(_) => {}
        }
        reply.filter(Reply::is_positive)
    }
}

/// `BDAT` of 25 MB without `LAST`, kept by `NOOP`.
pub(super) struct ParkedBdat {
    data: Vec<u8>,
}

impl ParkedBdat {
    pub(super) fn new() -> Self {
        Self { data: large_mail::compressible() }
    }

    async fn park_again_and_again(&self, target: &AttackTarget, log: &AttackLog, number: usize) {
        loop {
            self.park(target, log, number).await;
            sleep(RETRY).await;
        }
    }

    /// Until the data are discarded, which the reply to a further chunk shows, or the session is closed.
    async fn park(&self, target: &AttackTarget, log: &AttackLog, number: usize) -> Option<()> {
        let mut session = AttackSession::open(target, log).await?;
        session.begin(&[target.recipient(number)]).await?;
        session.chunk(&self.data, "").await?;
        loop {
            for _ in 0..5 {
                sleep(Duration::from_secs(1)).await;
                session.command("NOOP").await?;
            }
            session.chunk(b"\r\n", "").await?;
        }
    }
}

#[async_trait::async_trait]
impl Attack for ParkedBdat {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        join_all((0..PARKED).map(|number| self.park_again_and_again(target, log, number))).await;
    }
}

/// Message data of an octet a second.
pub(super) struct SlowData;

impl SlowData {
    async fn send_again_and_again(target: &AttackTarget, log: &AttackLog, number: usize) {
        loop {
            Self::send(target, log, number).await;
            sleep(RETRY).await;
        }
    }

    async fn send(target: &AttackTarget, log: &AttackLog, number: usize) -> Option<()> {
        let mut session = AttackSession::open(target, log).await?;
        session.begin(&[target.recipient(number)]).await?;
        session.command("DATA").await?;
        log.record("354");
        let mut ticks = interval(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            if session.client.try_send(b"x").await.is_err() {
                log.record("closed");
                return None;
            }
        }
    }
}

#[async_trait::async_trait]
impl Attack for SlowData {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        join_all((0..SLOW).map(|number| Self::send_again_and_again(target, log, number))).await;
    }
}

/// `RCPT` to unknown recipients, as fast as they are answered.
pub(super) struct Harvest;

impl Harvest {
    pub(super) async fn prepare(target: &AttackTarget) -> Self {
        insert_system_domain(&target.pool, &SystemClock::default(), EMPTY_DOMAIN, false).await;
        Self
    }

    async fn try_again_and_again(target: &AttackTarget, log: &AttackLog) {
        loop {
            Self::try_recipients(target, log).await;
            sleep(RETRY).await;
        }
    }

    async fn try_recipients(target: &AttackTarget, log: &AttackLog) -> Option<()> {
        let mut session = AttackSession::open(target, log).await?;
        session.begin(&[]).await?;
        loop {
            let recipient = format!("RCPT TO:<{}@{EMPTY_DOMAIN}>\r\n", Uuid::new_v4().simple());
            session.client.send(recipient).await;
            let Some(reply) = session.client.try_reply().await else {
                log.record("closed");
                return None;
            };
            log.record(reply.status());
        }
    }
}

#[async_trait::async_trait]
impl Attack for Harvest {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        join_all((0..HARVESTERS).map(|_| Self::try_again_and_again(target, log))).await;
    }
}
