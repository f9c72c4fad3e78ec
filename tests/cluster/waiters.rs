//! Clients that wait for mail, each for that of another address.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tempmail_tests::load::senders::SentMail;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Feed, Follower};

use crate::installation::NodeInstallation;

/// Waiters of a token: one long-poll, the others event streams.
const WAITERS_OF_TOKEN: usize = 5;

/// How long a mail took to its waiter.
pub(crate) struct Delay {
    /// When its `250` came.
    pub(crate) accepted_at: Instant,
    /// From then until the waiter had it.
    pub(crate) took: Duration,
}

/// Waiters of a group of addresses.
pub(crate) struct Waiters {
    addresses: Vec<String>,
    followers: Vec<Follower>,
}

impl Waiters {
    /// Starts a waiter for each of `count` addresses that begin with `name`, and waits until all are ready. The first
    /// `mailboxes` addresses are mailboxes, whose waiters are WebSockets.
    pub(crate) async fn start(
        installation: &NodeInstallation,
        name: &str,
        count: usize,
        mailboxes: usize,
    ) -> Self {
        let addresses: Vec<String> = (0..count).map(|nth| format!("{name}{nth}@mail.example.com")).collect();
        let (with_mailbox, others) = addresses.split_at(mailboxes);
        let jwts = installation.create_mailboxes(with_mailbox).await;
        let tokens = installation.live_tokens(others.len().div_ceil(WAITERS_OF_TOKEN)).await;
        let sockets = jwts.iter().map(|jwt| Follower::start(installation.api, jwt, Feed::WebSocket));
        let by_token = others.iter().enumerate().map(|(nth, address)| {
            let address = address.clone();
            let is_first = nth % WAITERS_OF_TOKEN == 0;
            let feed = if is_first { Feed::Inbox(address) } else { Feed::SseAddress(address) };
            Follower::start(installation.api, &tokens[nth / WAITERS_OF_TOKEN], feed)
        });
        let followers: Vec<Follower> = sockets.chain(by_token).collect();
        join_all(followers.iter().map(Follower::ready)).await;
        Self { addresses, followers }
    }

    /// The addresses, those of mailboxes first.
    pub(crate) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Waits until each waiter has every mail to its address, and returns how long each took. A waiter may have one twice
    /// whose `250` was lost.
    ///
    /// # Panics
    /// A mail is missing, or there are more than can be explained by repeated attempts.
    pub(crate) async fn have_every_mail(&self, accepted: &[SentMail]) -> Vec<Delay> {
        let mut expected: HashMap<&str, Vec<&SentMail>> = HashMap::new();
        for sent in accepted {
            expected.entry(&sent.mail.recipient).or_default().push(sent);
        }
        let mut delays = Vec::new();
        for (address, follower) in self.addresses.iter().zip(&self.followers) {
            if let Some(sent) = expected.get(address.as_str()) {
                delays.extend(has_every_mail(address, follower, sent).await);
            }
        }
        let received: usize = self.followers.iter().map(|follower| follower.receipts().len()).sum();
        let pushed_twice: usize = self.followers.iter().map(Follower::duplicates).sum();
        let waiters = self.followers.len();
        println!(
            "{waiters} waiters received {received} messages, {pushed_twice} of them twice, the slowest {} ms after its `250`",
            slowest(&delays).as_millis()
        );
        assert_eq!(pushed_twice, 0, "a cursor meets every message once");
        let stored_twice = received - accepted.len();
        let repeated = count_repeated(accepted);
        assert!(stored_twice <= repeated, "{stored_twice} mails too many, and {repeated} were repeated");
        delays
    }
}

/// The longest of these.
pub(crate) fn slowest<'a>(delays: impl IntoIterator<Item = &'a Delay>) -> Duration {
    delays.into_iter().map(|delay| delay.took).max().unwrap_or_default()
}

/// Waits until a waiter has all mails to its address.
async fn has_every_mail(address: &str, follower: &Follower, sent: &[&SentMail]) -> Vec<Delay> {
    let subjects: HashSet<&str> = sent.iter().map(|sent| sent.mail.subject.as_str()).collect();
    let receipts = eventually(&format!("{address} has its {} mails", subjects.len()), || async {
        let receipts = follower.receipts();
        let has_all = subjects.is_subset(&receipts.iter().map(|receipt| receipt.subject.as_str()).collect());
        has_all.then_some(receipts)
    })
    .await;
    let mut first_receipts = HashMap::new();
    for receipt in &receipts {
        first_receipts.entry(receipt.subject.as_str()).or_insert(receipt.at);
    }
    let delay = |sent: &&SentMail| {
        let accepted_at = sent.acceptance.at;
        let received_at = first_receipts[sent.mail.subject.as_str()];
        Delay { accepted_at, took: received_at.saturating_duration_since(accepted_at) }
    };
    sent.iter().map(delay).collect()
}

/// How many mails were accepted after a retry.
pub(crate) fn count_repeated(accepted: &[SentMail]) -> usize {
    accepted.iter().filter(|sent| sent.acceptance.attempts > 1).count()
}
