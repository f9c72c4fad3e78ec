//! Two API processes, two ingest processes and a worker over one Postgres and one Redis, with subscribers of every
//! feed at each API process.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tempmail_model::token::TokenKind;
use tempmail_tests::fleet::{FleetBuilder, Role};
use tempmail_tests::load::senders::{LoadProfile, Senders, SentMail};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Feed, Fleet, Follower, RedisProxy, RedisServer};
use uuid::Uuid;

/// A domain of the tenant.
pub const DOMAIN: &str = "harbour.example";

/// Recipients.
const MAILBOX: &str = "box@inbox.localhost";
const TAG: &str = "box+tag@inbox.localhost";
const FREE: &str = "free@inbox.localhost";
const SHARED: &str = "shared@inbox.localhost";
const DOMAIN_MAILBOX: &str = "desk@harbour.example";
const DOMAIN_ADDRESS: &str = "any@harbour.example";
const RECIPIENTS: [&str; 6] = [MAILBOX, TAG, FREE, SHARED, DOMAIN_MAILBOX, DOMAIN_ADDRESS];

/// See the module.
pub struct RealtimeFixture {
    /// Redis.
    pub redis: RedisServer,
    /// The proxy between the processes and Redis.
    pub proxy: RedisProxy,
    /// The processes.
    pub fleet: Fleet,
    /// Subscribers at both API processes.
    pub subscribers: Vec<CheckedSubscriber>,
}

/// A follower and what it must receive.
pub struct CheckedSubscriber {
    /// Index of the API process it started at.
    pub api: usize,
    feed: Feed,
    /// Addresses whose mail it must receive, besides the domain if its feed covers it.
    addresses: Vec<&'static str>,
    /// The client.
    pub follower: Follower,
}

impl RealtimeFixture {
    /// Starts everything; returns once every process is connected to Redis and every subscriber is ready.
    pub async fn start() -> Self {
        Self::start_with(Fleet::builder()).await
    }

    /// As [`Self::start`], with processes of this builder.
    pub async fn start_with(builder: FleetBuilder) -> Self {
        let redis = RedisServer::new();
        let proxy = RedisProxy::start(redis.port()).await;
        // Each answer of a mail wait has one mail: at the default rate it falls behind the load.
        let builder = builder.config(|config| config.limits.v1_per_second = 1_000);
        let fleet = builder.redis(&proxy.url()).start().await;
        redis_is_connected(&fleet).await;
        let subscribers = subscribers(&fleet).await;
        for subscriber in &subscribers {
            subscriber.follower.ready().await;
        }
        Self { redis, proxy, fleet, subscribers }
    }

    /// Mail to all subscribers over both ingest processes: some 150 a second, until it is stopped.
    pub fn load(&self) -> LoadProfile {
        LoadProfile {
            servers: vec![self.fleet.smtp(0), self.fleet.smtp(1)],
            recipients: RECIPIENTS.map(str::to_owned).to_vec(),
            connections: 6,
            interval: Some(Duration::from_millis(40)),
            mails_per_connection: None,
        }
    }

    /// Sends `mails` before and after a fault, and mail all the time; asserts that every subscriber receives each
    /// mail once. Returns what was accepted.
    pub async fn deliver_across(
        &mut self,
        mails: usize,
        fault: impl AsyncFnOnce(&mut Self, &Senders),
    ) -> Vec<SentMail> {
        let senders = Senders::start(&self.load());
        senders.wait_for_accepted(mails).await;
        fault(self, &senders).await;
        senders.wait_for_accepted(mails).await;
        let accepted = senders.stop().await;
        self.assert_delivered(&accepted).await;
        accepted
    }

    /// Moves the subscribers of one API process to another.
    pub fn move_subscribers(&self, from: usize, to: usize) {
        for subscriber in self.subscribers.iter().filter(|subscriber| subscriber.api == from) {
            subscriber.follower.switch_to(self.fleet.http(to));
        }
    }

    /// Asserts that all accepted mail is stored, and that every subscriber received exactly the stored mail of its
    /// feed, each once and in stream order.
    ///
    /// Over the WebSocket the order is that of the stream only within a connection: after a reconnect the list,
    /// which is newest first, fills the gap.
    pub async fn assert_delivered(&self, accepted: &[SentMail]) {
        let stored = self.stored_subjects().await;
        for SentMail { mail, .. } in accepted {
            let is_stored = stored.contains(&(mail.subject.clone(), mail.recipient.clone()));
            assert!(is_stored, "{} was accepted and is not stored", mail.subject);
        }
        // The stream is read in order: a subscriber that has these has everything before them.
        for address in RECIPIENTS {
            self.fleet.deliver(0, address, "last").await;
        }
        for subscriber in &self.subscribers {
            let expected = stored_for(&self.fleet.pool, subscriber).await;
            assert!(expected.len() > 1, "{subscriber:?} has no mail to receive");
            subscriber.assert_received(&expected).await;
        }
    }

    /// Subjects and addresses of all stored mail.
    async fn stored_subjects(&self) -> HashSet<(String, String)> {
        let rows = sqlx::query_as("SELECT subject, address FROM message").fetch_all(&self.fleet.pool).await;
        rows.unwrap().into_iter().collect()
    }

    /// Prints the delays between acceptance and receipt per feed, for mail accepted within `span`.
    #[expect(clippy::print_stdout, reason = "measured delays are for the reader of the log")]
    pub fn print_delays(&self, what: &str, accepted: &[SentMail], span: Range<Instant>) {
        let within =
            accepted.iter().map(|accepted| &accepted.acceptance).filter(|taken| span.contains(&taken.at));
        let accepted_at: HashMap<&str, Instant> = within.map(|taken| (&*taken.subject, taken.at)).collect();
        for feed in ["Inbox", "Domain", "Me", "Wait", "WaitOwned", "SseAddress", "SseUser", "WebSocket"] {
            let of_feed = self.subscribers.iter().filter(|subscriber| subscriber.feed_name() == feed);
            let receipts = of_feed.flat_map(|subscriber| subscriber.follower.receipts());
            let mut delays: Vec<Duration> = receipts
                .filter_map(|receipt| {
                    Some(receipt.at.saturating_duration_since(*accepted_at.get(&*receipt.subject)?))
                })
                .collect();
            delays.sort();
            let at = |percent: usize| delays.get(delays.len().saturating_sub(1) * percent / 100);
            if let (Some(p50), Some(p99), Some(max)) = (at(50), at(99), at(100)) {
                println!("{what}, {feed}: {} receipts, p50 {p50:?}, p99 {p99:?}, max {max:?}", delays.len());
            }
        }
    }
}

impl CheckedSubscriber {
    fn feed_name(&self) -> &'static str {
        match self.feed {
            Feed::Inbox(_) => "Inbox",
            Feed::Domain(_) => "Domain",
            Feed::Me => "Me",
            Feed::Wait(_) => "Wait",
            Feed::WaitOwned(_) => "WaitOwned",
            Feed::SseAddress(_) => "SseAddress",
            Feed::SseUser => "SseUser",
            Feed::WebSocket => "WebSocket",
        }
    }

    async fn assert_received(&self, expected: &[Uuid]) {
        // The stream is read in order, so nothing comes after the last one.
        let last = expected.last().expect("there is mail to receive");
        self.follower.wait_for_message(*last).await;
        if self.feed == Feed::WebSocket {
            // But a list after a reconnect is newest first, and may still go on.
            self.follower.wait_for(expected.len()).await;
        }
        let (received, duplicates) = (self.follower.received(), self.follower.duplicates());
        let (got, wanted): (HashSet<_>, HashSet<_>) = (received.iter().collect(), expected.iter().collect());
        let missing = expected.iter().filter(|id| !got.contains(id)).count();
        let foreign = received.iter().filter(|id| !wanted.contains(id)).count();
        assert_eq!((missing, foreign, duplicates), (0, 0, 0), "{self:?}: missing, foreign, duplicates");
        if self.feed != Feed::WebSocket || self.follower.attempts() == 1 {
            let at = received.iter().zip(expected).position(|(got, wanted)| got != wanted);
            assert_eq!(at, None, "{self:?}: not in stream order from here on");
        }
    }
}

impl fmt::Debug for CheckedSubscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at API process {}", self.feed, self.api)
    }
}

/// Waits until no process serves without Redis.
pub async fn redis_is_connected(fleet: &Fleet) {
    every_process_reports(fleet, "tempmail_bus_degraded 0").await;
}

/// Waits until every process serves without Redis.
pub async fn redis_is_lost(fleet: &Fleet) {
    every_process_reports(fleet, "tempmail_bus_degraded 1").await;
}

/// Waits until every process with a bus has this line in its metrics.
async fn every_process_reports(fleet: &Fleet, line: &str) {
    for pod in fleet.processes().iter().filter(|pod| pod.role() != Role::Worker) {
        eventually(&format!("a process reports {line}"), || async {
            let metrics = pod.metrics().await;
            metrics.lines().any(|found| found == line).then_some(())
        })
        .await;
    }
}

/// A subscriber of every feed at each API process, each with its own credential.
async fn subscribers(fleet: &Fleet) -> Vec<CheckedSubscriber> {
    let stranger = fleet.another_tenant("lagoon").await;
    fleet.custom_domain(&fleet.tenant, DOMAIN).await;
    let pro = Some(&*fleet.tenant.pro);
    let mailbox = fleet.mailbox(pro, MAILBOX).await;
    let domain_mailbox = fleet.mailbox(pro, DOMAIN_MAILBOX).await;
    let free = fleet.mailbox(None, FREE).await;
    let owned = vec![MAILBOX, TAG];
    let mut subscribers = Vec::new();
    for api in 0..2 {
        let by_token = [
            (&fleet.tenant, Feed::Inbox(MAILBOX.to_owned()), vec![MAILBOX, TAG]),
            (&fleet.tenant, Feed::Inbox(TAG.to_owned()), vec![TAG]),
            (&fleet.tenant, Feed::Inbox(DOMAIN_ADDRESS.to_owned()), vec![DOMAIN_ADDRESS]),
            (&stranger, Feed::Inbox(SHARED.to_owned()), vec![SHARED]),
            (&fleet.tenant, Feed::Domain(DOMAIN.to_owned()), vec![]),
            (&fleet.tenant, Feed::Me, owned.clone()),
            (&fleet.tenant, Feed::Wait(DOMAIN_ADDRESS.to_owned()), vec![DOMAIN_ADDRESS]),
            (&stranger, Feed::Wait(SHARED.to_owned()), vec![SHARED]),
            (&fleet.tenant, Feed::WaitOwned("+tag@".to_owned()), vec![TAG]),
            (&fleet.tenant, Feed::SseAddress(MAILBOX.to_owned()), vec![MAILBOX, TAG]),
            (&fleet.tenant, Feed::SseAddress(DOMAIN_ADDRESS.to_owned()), vec![DOMAIN_ADDRESS]),
            (&stranger, Feed::SseAddress(SHARED.to_owned()), vec![SHARED]),
            (&fleet.tenant, Feed::SseUser, owned.clone()),
        ];
        let mut all = Vec::new();
        for (tenant, feed, addresses) in by_token {
            all.push((fleet.token(tenant, TokenKind::Live).await, feed, addresses));
        }
        for (mailbox, addresses) in
            [(&mailbox, vec![MAILBOX, TAG]), (&domain_mailbox, vec![DOMAIN_MAILBOX]), (&free, vec![FREE])]
        {
            all.push((mailbox.jwt.clone(), Feed::WebSocket, addresses));
        }
        subscribers.extend(all.into_iter().map(|(credential, feed, addresses)| {
            let follower = fleet.follow(api, &credential, feed.clone());
            CheckedSubscriber { api, feed, addresses, follower }
        }));
    }
    subscribers
}

/// Ids of all stored messages of a subscriber's feed, in stream order.
async fn stored_for(pool: &PgPool, subscriber: &CheckedSubscriber) -> Vec<Uuid> {
    let ids = sqlx::query_scalar(
        "SELECT id FROM message
         WHERE address = ANY ($1) OR $2 AND split_part(address, '@', 2) = $3 ORDER BY seq",
    );
    let whole_domain = matches!(subscriber.feed, Feed::Domain(_) | Feed::Me | Feed::SseUser);
    ids.bind(&subscriber.addresses).bind(whole_domain).bind(DOMAIN).fetch_all(pool).await.unwrap()
}
