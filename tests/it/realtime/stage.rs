//! Two processes that answer HTTP, two that take mail and one that works, a Redis that can fail
//! them, and at each of the two somebody who listens in every way.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tempmail_model::token::TokenKind;
use tempmail_tests::fleet::{FleetBuilder, Role};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Follower, RedisProxy, RedisServer, Way};
use uuid::Uuid;

use super::senders::{Accepted, Flow};

/// A domain of the tenant.
pub const DOMAIN: &str = "harbour.example";

/// Addresses that mail is sent to.
const MAILBOX: &str = "box@inbox.localhost";
const TAG: &str = "box+tag@inbox.localhost";
const FREE: &str = "free@inbox.localhost";
const SHARED: &str = "shared@inbox.localhost";
const OWN_MAILBOX: &str = "desk@harbour.example";
const OWN: &str = "any@harbour.example";

/// See the module.
pub struct Stage {
    /// Redis.
    pub redis: RedisServer,
    /// What all processes reach it through.
    pub proxy: RedisProxy,
    /// The processes.
    pub fleet: Fleet,
    /// Those who listen.
    pub listeners: Vec<Listener>,
}

/// Somebody who listens at one of the processes.
pub struct Listener {
    /// Which of the two it began at.
    pub api: usize,
    way: Way,
    /// Whose mail it is to meet, beside all of the domain where its way is that or wider.
    addresses: Vec<&'static str>,
    /// What it does.
    pub follower: Follower,
}

impl Stage {
    /// All of it, when every process knows Redis to be well and nobody who listens can miss what
    /// comes.
    pub async fn set() -> Self {
        Self::set_with(Fleet::builder()).await
    }

    /// As [`Self::set`], with processes as they are built here.
    pub async fn set_with(builder: FleetBuilder) -> Self {
        let redis = RedisServer::new();
        let proxy = RedisProxy::start(redis.port()).await;
        let fleet = builder.redis(&proxy.url()).start().await;
        redis_is_well(&fleet).await;
        let listeners = listeners(&fleet).await;
        for listener in &listeners {
            listener.follower.ready().await;
        }
        Self { redis, proxy, fleet, listeners }
    }

    /// Mail to all who listen, to both that take it: some 150 a second, until it is stopped.
    pub fn flow(&self) -> Flow {
        Flow {
            servers: vec![self.fleet.smtp(0), self.fleet.smtp(1)],
            recipients: [MAILBOX, TAG, FREE, SHARED, OWN_MAILBOX, OWN].map(str::to_owned).to_vec(),
            connections: 6,
            pace: Some(Duration::from_millis(40)),
            each: None,
        }
    }

    /// Has everybody who listens at one process go on at another.
    pub fn move_listeners(&self, from: usize, to: usize) {
        for listener in self.listeners.iter().filter(|listener| listener.api == from) {
            listener.follower.switch_to(self.fleet.http(to));
        }
    }

    /// Asserts that all that has its `250` is in Postgres, and that everybody who listens has met
    /// exactly what is there for them, each mail once, and in the order of the stream.
    ///
    /// The WebSocket has that order only while a connection lasts: after a new one the list, which
    /// is newest first, tells what came between.
    pub async fn all_is_met(&self, accepted: &[Accepted]) {
        let stored = self.stored_subjects().await;
        for Accepted { mail, .. } in accepted {
            let is_stored = stored.contains(&(mail.subject.clone(), mail.recipient.clone()));
            assert!(is_stored, "{} has its 250 and is not stored", mail.subject);
        }
        // Whoever has met these has been given all that is before them in the stream.
        for address in [MAILBOX, TAG, FREE, SHARED, OWN_MAILBOX, OWN] {
            self.fleet.deliver(0, address, "last").await;
        }
        for listener in &self.listeners {
            let expected = stored_to(&self.fleet.pool, listener).await;
            assert!(expected.len() > 1, "{listener:?} has no mail to meet");
            listener.meets(&expected).await;
        }
    }

    /// Every subject and address.
    async fn stored_subjects(&self) -> HashSet<(String, String)> {
        let rows = sqlx::query_as("SELECT subject, address FROM message").fetch_all(&self.fleet.pool).await;
        rows.unwrap().into_iter().collect()
    }

    /// Prints by way of listening how long after its `250` mail was met that was taken within `span`.
    #[expect(clippy::print_stdout, reason = "no test is about time: who runs it may want to know")]
    pub fn print_delay(&self, what: &str, accepted: &[Accepted], span: Range<Instant>) {
        let within = accepted.iter().map(|accepted| &accepted.taken).filter(|taken| span.contains(&taken.at));
        let taken: HashMap<&str, Instant> = within.map(|taken| (&*taken.subject, taken.at)).collect();
        for way in ["Inbox", "Domain", "Me", "SseAddress", "SseUser", "WebSocket"] {
            let of_way = self.listeners.iter().filter(|listener| listener.name() == way);
            let receipts = of_way.flat_map(|listener| listener.follower.receipts());
            let mut delays: Vec<Duration> = receipts
                .filter_map(|receipt| {
                    Some(receipt.at.saturating_duration_since(*taken.get(&*receipt.subject)?))
                })
                .collect();
            delays.sort();
            let at = |percent: usize| delays.get(delays.len().saturating_sub(1) * percent / 100);
            if let (Some(p50), Some(p99), Some(most)) = (at(50), at(99), at(100)) {
                println!("{what}, {way}: {} receipts, p50 {p50:?}, p99 {p99:?}, most {most:?}", delays.len());
            }
        }
    }
}

impl Listener {
    fn name(&self) -> &'static str {
        match self.way {
            Way::Inbox(_) => "Inbox",
            Way::Domain(_) => "Domain",
            Way::Me => "Me",
            Way::SseAddress(_) => "SseAddress",
            Way::SseUser => "SseUser",
            Way::WebSocket => "WebSocket",
        }
    }

    async fn meets(&self, expected: &[Uuid]) {
        // The stream is followed in its order: after the last there is nothing to come.
        let last = expected.last().expect("there is mail to meet");
        self.follower.wait_for_message(*last).await;
        let (received, duplicates) = (self.follower.received(), self.follower.duplicates());
        let (met, wanted): (HashSet<_>, HashSet<_>) = (received.iter().collect(), expected.iter().collect());
        let missed = expected.iter().filter(|id| !met.contains(id)).count();
        let foreign = received.iter().filter(|id| !wanted.contains(id)).count();
        assert_eq!((missed, foreign, duplicates), (0, 0, 0), "{self:?}: missed, not for it, twice");
        if self.way != Way::WebSocket || self.follower.attempts() == 1 {
            let at = received.iter().zip(expected).position(|(met, wanted)| met != wanted);
            assert_eq!(at, None, "{self:?}: another order than that of the stream, from here on");
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at process {}", self.way, self.api)
    }
}

/// Returns when no process has to do without Redis.
pub async fn redis_is_well(fleet: &Fleet) {
    for pod in fleet.processes().iter().filter(|pod| pod.role() != Role::Worker) {
        eventually("Redis is well", || async {
            let metrics = pod.metrics().await;
            metrics.lines().any(|line| line == "tempmail_bus_degraded 0").then_some(())
        })
        .await;
    }
}

/// Somebody at each process in every way, each with a credential of its own.
async fn listeners(fleet: &Fleet) -> Vec<Listener> {
    let stranger = fleet.another_tenant("lagoon").await;
    fleet.custom_domain(&fleet.tenant, DOMAIN).await;
    let pro = Some(&*fleet.tenant.pro);
    let mailbox = fleet.mailbox(pro, MAILBOX).await;
    let own_mailbox = fleet.mailbox(pro, OWN_MAILBOX).await;
    let free = fleet.mailbox(None, FREE).await;
    let owned = vec![MAILBOX, TAG];
    let mut listeners = Vec::new();
    for api in 0..2 {
        let by_token = [
            (&fleet.tenant, Way::Inbox(MAILBOX.to_owned()), vec![MAILBOX, TAG]),
            (&fleet.tenant, Way::Inbox(TAG.to_owned()), vec![TAG]),
            (&fleet.tenant, Way::Inbox(OWN.to_owned()), vec![OWN]),
            (&stranger, Way::Inbox(SHARED.to_owned()), vec![SHARED]),
            (&fleet.tenant, Way::Domain(DOMAIN.to_owned()), vec![]),
            (&fleet.tenant, Way::Me, owned.clone()),
            (&fleet.tenant, Way::SseAddress(MAILBOX.to_owned()), vec![MAILBOX, TAG]),
            (&fleet.tenant, Way::SseAddress(OWN.to_owned()), vec![OWN]),
            (&stranger, Way::SseAddress(SHARED.to_owned()), vec![SHARED]),
            (&fleet.tenant, Way::SseUser, owned.clone()),
        ];
        let mut all = Vec::new();
        for (tenant, way, addresses) in by_token {
            all.push((fleet.token(tenant, TokenKind::Live).await, way, addresses));
        }
        for (mailbox, addresses) in
            [(&mailbox, vec![MAILBOX, TAG]), (&own_mailbox, vec![OWN_MAILBOX]), (&free, vec![FREE])]
        {
            all.push((mailbox.jwt.clone(), Way::WebSocket, addresses));
        }
        listeners.extend(all.into_iter().map(|(credential, way, addresses)| {
            let follower = fleet.follow(api, &credential, way.clone());
            Listener { api, way, addresses, follower }
        }));
    }
    listeners
}

/// Ids of all messages that somebody is to meet, in the order of the stream.
async fn stored_to(pool: &PgPool, listener: &Listener) -> Vec<Uuid> {
    let ids = sqlx::query_scalar(
        "SELECT id FROM message
         WHERE address = ANY ($1) OR $2 AND split_part(address, '@', 2) = $3 ORDER BY seq",
    );
    let all_of_domain = matches!(listener.way, Way::Domain(_) | Way::Me | Way::SseUser);
    ids.bind(&listener.addresses).bind(all_of_domain).bind(DOMAIN).fetch_all(pool).await.unwrap()
}
