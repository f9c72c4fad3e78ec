//! The neighbour `tags`: a tenant whose mailbox is full of mail to a thousand tags. It deletes mail by
//! tag at the rate limit of a token, and keeps receiving mail to a hundred tags at a time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{self, MissedTickBehavior, interval};

use super::session::{Delivery, Outcome, OutcomeCounts, SmtpSender, TIMEOUT};
use super::{DOMAIN, TempmailEndpoints};
use crate::http::{HttpClient, Response};
use crate::mail::Mails;

/// Local part of the mailbox.
const MAILBOX: &str = "box";
/// Tags that its mail is spread over.
const TAGS: usize = 1_000;
/// Recipients a transaction, the most there may be.
const RECIPIENTS: usize = 100;
/// Percent of the quota that is filled by transactions of many recipients; what is left is filled by single mails.
const FILLED: u64 = 99;
/// Single mails that fill what is left, at most.
const TOP_UP: usize = 5_000;
/// Octets of the mails by which it is found what a message counts beside them.
const TRIAL: u64 = 1_000;
/// Deletions a second: a token may make 10 requests.
const DELETIONS: u32 = 9;
/// Mails a second that it gets meanwhile, each to a hundred of its tags, and the connections they come over.
const MAILS: u32 = 20;
const CONNECTIONS: u32 = 4;

/// The tenant, its mailbox filled.
#[derive(Debug)]
pub struct TagTenant {
    endpoints: TempmailEndpoints,
    mails: Arc<Mails>,
    /// Number of the next mail; all numbers have the same number of digits.
    number: Arc<AtomicUsize>,
}

impl TagTenant {
    /// Makes the mailbox and fills it with about so many messages.
    ///
    /// # Errors
    /// It can't be made, or does not take so many.
    pub async fn fill(endpoints: &TempmailEndpoints, messages: usize) -> anyhow::Result<Self> {
        let transactions = messages / RECIPIENTS;
        ensure!(transactions >= 2, "--messages must be {} at least", 2 * RECIPIENTS);
        let bearer = format!("Authorization: Bearer {}", endpoints.pro_token);
        let mut client = HttpClient::connect(endpoints.http).await?;
        let body = json!({ "address": format!("{MAILBOX}@{DOMAIN}"), "password": "correct horse" });
        let made = client.send("POST", "/api/accounts", &bearer, &body.to_string()).await?;
        ensure!(made.status == 201, "a mailbox was answered {}", made.status);

        let began = Instant::now();
        let mut sender = SmtpSender::new(endpoints.smtp);
        let mut tags = Self {
            endpoints: endpoints.clone(),
            mails: Arc::new(Mails::of_size(usize::try_from(TRIAL)?)),
            number: Arc::new(AtomicUsize::new(100_000)),
        };
        tags.fill_by(&mut sender, 0).await?;
        let (quota, used) = quota_and_usage(&mut client, &bearer).await?;
        let each = (quota * FILLED / 100).saturating_sub(used) / ((transactions - 1) * RECIPIENTS) as u64;
        let size = (TRIAL + each).saturating_sub(used / RECIPIENTS as u64);
        tags.mails = Arc::new(Mails::of_size(usize::try_from(size)?));
        for transaction in 1..transactions {
            tags.fill_by(&mut sender, transaction).await?;
            if (transaction + 1) % 100 == 0 {
                println!("tags: {} messages, {:.0?}", (transaction + 1) * RECIPIENTS, began.elapsed());
            }
        }
        tags.top_up(&mut sender).await?;
        let (quota, used) = quota_and_usage(&mut client, &bearer).await?;
        println!(
            "tags: {} messages and more of {each} octets in {:.0?}: {used} of {quota} octets, {} %",
            transactions * RECIPIENTS,
            began.elapsed(),
            used * 100 / quota
        );
        Ok(tags)
    }

    /// A message to each of a hundred tags, the next ones with each transaction.
    async fn fill_by(&self, sender: &mut SmtpSender, transaction: usize) -> anyhow::Result<()> {
        let first = transaction * RECIPIENTS;
        let recipients: Vec<String> =
            (first..first + RECIPIENTS).map(|number| address(&(number % TAGS).to_string())).collect();
        let sent = sender.send(&recipients, &self.mail()).await;
        ensure!(sent.outcome == Outcome::Code(250), "transaction {transaction}: {}", sent.outcome);
        Ok(())
    }

    /// Fills what is left, until a mail does not fit any more: from then on each mail to it is checked exactly.
    async fn top_up(&self, sender: &mut SmtpSender) -> anyhow::Result<()> {
        for number in 0..TOP_UP {
            let sent = sender.send(&[address(&(number % TAGS).to_string())], &self.mail()).await;
            match sent.outcome {
                Outcome::Code(250) => {}
                Outcome::Code(452) => return Ok(()),
                answer => bail!("mail {number} to the full mailbox: {answer}"),
            }
        }
        bail!("the mailbox is not full after {TOP_UP} mails more")
    }

    fn mail(&self) -> Vec<u8> {
        let mut mail = Vec::new();
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        self.mails.write(&mut mail, number, &format!("{MAILBOX}@{DOMAIN}"));
        mail
    }

    /// Deletes and gets mail until then; what came of it.
    ///
    /// # Errors
    /// A task of it panicked.
    pub async fn run(&self, until: time::Instant) -> anyhow::Result<String> {
        let (deletions, mail) = tokio::join!(self.delete(until), self.receive_mail(until));
        Ok(format!("deletions by tag: {}; mails to it: {}", deletions?, mail?))
    }

    /// Each when it is due, whatever the ones before wait for, as the limit lets a tenant.
    async fn delete(&self, until: time::Instant) -> anyhow::Result<OutcomeCounts> {
        let mut ticks = interval(Duration::from_secs(1) / DELETIONS);
        let mut requests = JoinSet::new();
        for number in 0.. {
            if ticks.tick().await >= until {
                break;
            }
            requests.spawn(delete(self.endpoints.http, self.endpoints.live_token.clone(), number % TAGS));
        }
        let mut answers = OutcomeCounts::default();
        while let Some(delivery) = requests.join_next().await {
            answers.add(delivery?);
        }
        Ok(answers)
    }

    /// The next mail of a connection waits for the one before.
    async fn receive_mail(&self, until: time::Instant) -> anyhow::Result<OutcomeCounts> {
        let mut connections = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let tags = Self {
                endpoints: self.endpoints.clone(),
                mails: Arc::clone(&self.mails),
                number: Arc::clone(&self.number),
            };
            connections.spawn(async move {
                let mut ticks = interval(Duration::from_secs(1) * CONNECTIONS / MAILS);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                let (mut sender, mut answers) =
                    (SmtpSender::new(tags.endpoints.smtp), OutcomeCounts::default());
                ticks.tick().await;
                let recipients: Vec<String> =
                    (0..RECIPIENTS).map(|number| address(&format!("x{number}"))).collect();
                while time::Instant::now() < until {
                    answers.add(sender.send(&recipients, &tags.mail()).await);
                    ticks.tick().await;
                }
                answers
            });
        }
        let mut all = OutcomeCounts::default();
        while let Some(answers) = connections.join_next().await {
            all.merge(answers?);
        }
        Ok(all)
    }
}

fn address(tag: &str) -> String {
    format!("{MAILBOX}+{tag}@{DOMAIN}")
}

/// Over a connection of its own.
async fn delete(http: SocketAddr, token: String, tag: usize) -> Delivery {
    let began = Instant::now();
    let request = async {
        let target = format!("/v1/inbox/{MAILBOX}%2B{tag}@{DOMAIN}");
        let mut client = HttpClient::connect(http).await?;
        client.send("DELETE", &target, &format!("x-api-token: {token}"), "").await
    };
    let answer = match time::timeout(TIMEOUT, request).await {
        Ok(Ok(Response { status, .. })) => Outcome::Code(status),
        Ok(Err(_)) => Outcome::ConnectionLost,
        Err(_) => Outcome::TimedOut,
    };
    Delivery { outcome: answer, wait: began.elapsed() }
}

/// Quota and use of the mailbox in octets.
async fn quota_and_usage(client: &mut HttpClient, bearer: &str) -> anyhow::Result<(u64, u64)> {
    let answer = client.get_with("/pro/api/accounts", bearer).await?;
    ensure!(answer.status == 200, "/pro/api/accounts answered {}", answer.status);
    let body: Value = serde_json::from_slice(&answer.body)?;
    let address = format!("{MAILBOX}@{DOMAIN}");
    let mut accounts = body["accounts"].as_array().into_iter().flatten();
    let account = accounts.find(|account| account["address"] == address.as_str());
    let account = account.context("/pro/api/accounts does not list the mailbox")?;
    let octets = |key: &str| account[key].as_u64().with_context(|| format!("an account without {key}"));
    Ok((octets("quota")?, octets("used")?))
}
