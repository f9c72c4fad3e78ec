//! Attacks on what is stored: bytes, and the sums over a mailbox.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::http::{self, count};
use super::smtp::AttackSession;
use super::{Attack, AttackLog, AttackTarget, Placement, RETRY, large_mail};
use crate::http::percent;
use crate::mailbox::Mailbox;
use crate::rows::{SYSTEM_DOMAIN, set_mailbox_quota};

/// Recipients of a mail, the most there may be, and tags of a filled mailbox.
const RECIPIENTS: usize = 100;
/// Sessions that send large mail.
const FILLERS: usize = 6;
/// Mails of a filled mailbox, each to all tags: 20,000 messages.
const MAILS: usize = 200;
/// Sessions that fill it.
const SESSIONS: usize = 8;
/// Its quota in bytes: a mail counts its size once, and 1,024 for each further message.
const QUOTA: i64 = 21 << 20;
/// Deletions a second: a token may make 10 requests.
const DELETIONS: usize = 9;
/// Sessions that send to its tags meanwhile, and time between two mails of each.
const SENDERS: (usize, Duration) = (4, Duration::from_millis(200));

/// Mails of 25 MB to 100 recipients.
pub(super) struct StoreFiller {
    mail: Vec<u8>,
    next: AtomicUsize,
}

impl StoreFiller {
    /// Mail to strangers fills the disk. What a tenant gets is compressible: a full tenant is refused, whoever sends.
    pub(super) fn new(target: &AttackTarget) -> Self {
        let mail = match target.placement {
            Placement::Apart | Placement::SameClient => large_mail::incompressible(),
            Placement::SameTenant | Placement::SameAddress => large_mail::compressible(),
        };
        Self { mail, next: AtomicUsize::new(0) }
    }

    /// New addresses for each mail, so that no single inbox is full.
    fn recipients(&self, target: &AttackTarget) -> Vec<String> {
        let first = self.next.fetch_add(RECIPIENTS, Ordering::Relaxed);
        let mut recipients: Vec<String> =
            (first..first + RECIPIENTS).map(|number| target.recipient(number)).collect();
        recipients.sort_unstable();
        recipients.dedup();
        recipients
    }

    async fn fill(&self, target: &AttackTarget, log: &AttackLog) {
        loop {
            if let Some(mut session) = AttackSession::open(target, log).await {
                while session.mail(&self.recipients(target), &self.mail).await.is_some() {}
            }
            sleep(RETRY).await;
        }
    }
}

#[async_trait::async_trait]
impl Attack for StoreFiller {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        join_all((0..FILLERS).map(|_| self.fill(target, log))).await;
    }
}

/// A mailbox of the attacker with 20,000 messages to 100 tags, nearly full.
pub(super) async fn filled_mailbox(target: &AttackTarget) -> Mailbox {
    set_mailbox_quota(&target.pool, target.attacker.id, 100, QUOTA).await;
    let mailbox = target.mailbox(Some(&target.attacker.pro), "full").await;
    let log = AttackLog::default();
    let fill = async |mails: usize| {
        let mut session = AttackSession::open(target, &log).await?;
        for _ in 0..mails {
            session.mail(&all_tags(), SMALL).await?;
        }
        Some(())
    };
    let filled = join_all((0..SESSIONS).map(|_| fill(MAILS / SESSIONS))).await;
    assert!(filled.iter().all(Option::is_some), "the mailbox can be filled: {log:?}");
    mailbox
}

const SMALL: &[u8] = b"From: <attacker@client.example>\r\nSubject: small\r\n\r\nsmall\r\n";

fn tag(number: usize) -> String {
    format!("full+{number}@{SYSTEM_DOMAIN}")
}

fn all_tags() -> Vec<String> {
    (0..RECIPIENTS).map(tag).collect()
}

/// Deletions by tag in a nearly full mailbox, which receives mail meanwhile.
pub(super) struct TagDeletions;

impl TagDeletions {
    pub(super) async fn prepare(target: &AttackTarget) -> Self {
        filled_mailbox(target).await;
        Self
    }

    /// One deletion a second, of every [`DELETIONS`]th tag.
    async fn delete(target: &AttackTarget, log: &AttackLog, client: &reqwest::Client, first: usize) {
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in (first..).step_by(DELETIONS) {
            ticks.tick().await;
            let path = format!("/v1/inbox/{}", percent(&tag(number % RECIPIENTS)));
            let request = client.request(Method::DELETE, target.url(&path));
            count(log, "DELETE ", request.header("x-api-token", &target.attacker.live)).await;
        }
    }

    async fn send(target: &AttackTarget, log: &AttackLog) {
        loop {
            if let Some(mut session) = AttackSession::open(target, log).await {
                while session.mail(&all_tags(), SMALL).await.is_some() {
                    sleep(SENDERS.1).await;
                }
            }
            sleep(RETRY).await;
        }
    }
}

#[async_trait::async_trait]
impl Attack for TagDeletions {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        let client = http::client(target);
        let deletions = join_all((0..DELETIONS).map(|first| Self::delete(target, log, &client, first)));
        let mails = join_all((0..SENDERS.0).map(|_| Self::send(target, log)));
        tokio::join!(deletions, mails);
    }
}
