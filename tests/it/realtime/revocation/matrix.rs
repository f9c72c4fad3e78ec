//! Which subscribers each cause disconnects, and with which error.
//!
//! A row is a cause, applied to a tenant of its own. A column is a scope, read over every transport: long-polls, mail
//! waits, event streams, WebSockets, requests of a Pro session. A cell is the rejection, or `ON`: the subscriber stays connected
//! and receives later mail.
//!
//! Subscribers are at the second of two processes; causes are applied at the first one or by a command. All rows run at
//! once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use tempmail_runtime::config::DnsMode;
use tempmail_tests::smtp::{message, send_mail};
use tempmail_tests::wait::{DEADLINE, eventually};
use tempmail_tests::{Fleet, RedisServer, TestDns};
use tokio::time::sleep;

use super::cause::Cause;
use super::fixture::{Scope, TenantFixture};
use super::subscriber::{Subscriber, Transport};

/// Longest time for which access may outlive its cause.
const BOUND: Duration = Duration::from_secs(5);

/// The rejection of a subscriber; `None` if it stays connected.
type Outcome = Option<(u16, &'static str)>;

const ON: Outcome = None;
const TOKEN: Outcome = Some((401, "invalid_token"));
const EXPIRED: Outcome = Some((440, "session_expired"));
const DISABLED: Outcome = Some((403, "account_disabled"));
const MISSING: Outcome = Some((404, "not_found"));

/// Scopes that are read with live tokens, over `/v1`.
const OF_TOKENS: [Scope; 6] =
    [Scope::Mailbox, Scope::DomainMailbox, Scope::DomainAddress, Scope::Shared, Scope::Domain, Scope::Owned];
/// Scopes that are read with mailbox JWTs.
const OF_SOCKETS: [Scope; 3] = [Scope::Mailbox, Scope::DomainMailbox, Scope::Free];

/// Outcomes of a cause: of tokens by scope, of sockets by mailbox, and of a Pro session.
struct Row {
    cause: Cause,
    name: &'static str,
    tokens: [Outcome; 6],
    sockets: [Outcome; 3],
    session: Outcome,
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let row = |cause, name, tokens, sockets, session| Row { cause, name, tokens, sockets, session };
    vec![
        // A live token and a mailbox JWT are independent; a session ends with its token.
        //                                                      mailbox   its other  another   shared    the whole  all that   mailbox   its other free      Pro
        //                                                                under the domain     inbox     domain     is owned   socket    socket    socket    session
        row(Cause::TokenRevoked,          "revoked",           [TOKEN,    TOKEN,     TOKEN,    TOKEN,    TOKEN,     TOKEN],   [ON,       ON,       ON],      TOKEN),
        row(Cause::TokenRevokedByCommand, "revoked-by-cli",    [TOKEN,    TOKEN,     TOKEN,    TOKEN,    TOKEN,     TOKEN],   [ON,       ON,       ON],      TOKEN),
        row(Cause::TokenExpires,          "expires",           [EXPIRED,  EXPIRED,   EXPIRED,  EXPIRED,  EXPIRED,   EXPIRED], [ON,       ON,       ON],      EXPIRED),
        row(Cause::ExpiryBroughtForward,  "expires-sooner",    [EXPIRED,  EXPIRED,   EXPIRED,  EXPIRED,  EXPIRED,   EXPIRED], [ON,       ON,       ON],      EXPIRED),
        row(Cause::TenantSuspended,       "suspended",         [DISABLED, DISABLED,  DISABLED, DISABLED, DISABLED,  DISABLED],[DISABLED, DISABLED, ON],      DISABLED),
        row(Cause::TenantDeleted,         "deleted",           [TOKEN,    TOKEN,     TOKEN,    TOKEN,    TOKEN,     TOKEN],   [TOKEN,    TOKEN,    ON],      TOKEN),
        // Only JWTs depend on the password.
        row(Cause::PasswordReset,         "reset",             [ON,       ON,        ON,       ON,       ON,        ON],      [TOKEN,    TOKEN,    ON],      ON),
        // Under a custom domain the address stays the tenant's without the mailbox.
        row(Cause::MailboxDeleted,        "mailbox-deleted",   [MISSING,  ON,        ON,       ON,       ON,        ON],      [TOKEN,    TOKEN,    ON],      ON),
        row(Cause::MailboxDeletedByOwner, "deleted-by-owner",  [MISSING,  ON,        ON,       ON,       ON,        ON],      [TOKEN,    TOKEN,    TOKEN],   ON),
        row(Cause::MailboxIdle,           "idle",              [ON,       ON,        ON,       ON,       ON,        ON],      [ON,       ON,       TOKEN],   ON),
        row(Cause::DomainLost,            "lost",              [ON,       MISSING,   MISSING,  ON,       MISSING,   ON],      [ON,       TOKEN,    ON],      ON),
        row(Cause::DomainHandedOver,      "handed-over",       [ON,       MISSING,   MISSING,  ON,       MISSING,   ON],      [ON,       TOKEN,    ON],      ON),
        row(Cause::DomainDeleted,         "domain-deleted",    [ON,       MISSING,   MISSING,  ON,       MISSING,   ON],      [ON,       TOKEN,    ON],      ON),
        row(Cause::SharedInboxesOff,      "closed",            [ON,       ON,        ON,       MISSING,  ON,        ON],      [ON,       ON,       ON],      ON),
        row(Cause::SystemDomainRemoved,   "removed",           [MISSING,  ON,        ON,       MISSING,  ON,        ON],      [TOKEN,    ON,       TOKEN],   ON),
    ]
}

impl Row {
    fn outcome(&self, scope: Scope, transport: &Transport) -> Outcome {
        let index_in = |scopes: &[Scope]| scopes.iter().position(|it| *it == scope).unwrap();
        match transport {
            Transport::ProSession { .. } => self.session,
            Transport::WebSocket { .. } => self.sockets[index_in(&OF_SOCKETS)],
            Transport::LongPoll { .. } | Transport::MailWait { .. } | Transport::Sse { .. } => {
                self.tokens[index_in(&OF_TOKENS)]
            }
        }
    }

    /// Subjects that a subscriber receives of the mail sent to each address after the cause.
    fn received_later(&self, scope: Scope, transport: &Transport) -> BTreeSet<String> {
        if self.outcome(scope, transport) != ON {
            return BTreeSet::new();
        }
        let is_readable = |sent: &Scope| {
            matches!(transport, Transport::WebSocket { .. }) || self.outcome(*sent, transport) == ON
        };
        mail_of(scope).iter().filter(|sent| is_readable(sent)).map(|sent| subject("later", *sent)).collect()
    }
}

/// Scopes whose mail a scope includes.
fn mail_of(scope: Scope) -> &'static [Scope] {
    match scope {
        Scope::Account => &[],
        Scope::Owned => &[Scope::Mailbox, Scope::DomainMailbox, Scope::DomainAddress],
        Scope::Domain => &[Scope::DomainMailbox, Scope::DomainAddress],
        Scope::Mailbox => &[Scope::Mailbox],
        Scope::DomainMailbox => &[Scope::DomainMailbox],
        Scope::DomainAddress => &[Scope::DomainAddress],
        Scope::Shared => &[Scope::Shared],
        Scope::Free => &[Scope::Free],
    }
}

fn subject(when: &str, scope: Scope) -> String {
    format!("{when} {scope:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_revocation_reaches_subscribers() {
    // A time that comes by itself is waited for in `chaos`; tests with a clock of their own move it.
    let rows = rows().into_iter().filter(|row| !row.cause.is_timed()).collect();
    let times = run(rows, true).await;
    assert!(!times.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn revocations_reach_subscribers_without_redis() {
    let causes =
        [Cause::TokenRevoked, Cause::TenantSuspended, Cause::MailboxDeletedByOwner, Cause::DomainLost];
    let rows = rows().into_iter().filter(|row| causes.contains(&row.cause)).collect();
    let times = run(rows, false).await;
    assert!(!times.is_empty());
}

/// Runs all rows, and asserts that every rejection comes in time.
pub async fn within_5_s(with_redis: bool) {
    let times = run(rows(), with_redis).await;
    let late: Vec<_> = times.iter().filter(|(_, time)| *time > BOUND).collect();
    assert!(late.is_empty(), "{late:?}");
}

/// A row with its tenant and subscribers.
struct RunningRow {
    row: Row,
    fixture: TenantFixture,
    subscribers: Vec<(Scope, Subscriber)>,
}

/// Runs rows and asserts their outcomes; returns the time from the cause to each rejection.
async fn run(rows: Vec<Row>, with_redis: bool) -> Vec<(String, Duration)> {
    let mut redis = RedisServer::new();
    let dns = TestDns::start().await;
    let fleet = Fleet::builder()
        .ingests(1)
        .redis(&redis.url())
        .config(|config| config.dns = dns.settings(DnsMode::Authoritative))
        .start()
        .await;
    let fixtures = stream::iter(rows).map(|row| async {
        let fixture = TenantFixture::create(&fleet, row.name).await;
        (row, fixture)
    });
    // Not all at once: a request that waits too long for a password hash or a connection is refused.
    let fixtures: Vec<_> = fixtures.buffered(4).collect().await;
    let (timed, others): (Vec<_>, Vec<_>) = fixtures.into_iter().partition(|(row, _)| row.cause.is_timed());
    let mut running =
        join_all(others.into_iter().map(|(row, fixture)| subscribe(&fleet, &dns, row, fixture))).await;
    if !with_redis {
        redis.stop();
    }
    running.extend(
        join_all(timed.into_iter().map(|(row, fixture)| subscribe(&fleet, &dns, row, fixture))).await,
    );

    let causes = running.iter().map(|running| running.row.cause.apply(&fleet, &dns, &running.fixture));
    let applied = join_all(causes).await;
    let rejections = running.iter().zip(&applied).map(|(running, applied)| running.rejections(*applied));
    let (times, wrong): (Vec<_>, Vec<_>) = join_all(rejections).await.into_iter().unzip();
    let mut wrong = wrong.concat();
    wrong.extend(join_all(running.iter().map(|running| running.later_mail(&fleet))).await.concat());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    times.concat()
}

/// Prepares a row: everybody is subscribed, and has received a first mail.
async fn subscribe(fleet: &Fleet, dns: &TestDns, row: Row, fixture: TenantFixture) -> RunningRow {
    row.cause.prepare(fleet, dns, &fixture).await;
    let subscribers = fixture.subscribe(fleet.http(1));
    let running = RunningRow { row, fixture, subscribers };
    for (scope, subscriber) in &running.subscribers {
        eventually(&format!("{} is subscribed", running.name(*scope, subscriber)), || async {
            subscriber.received().is_ready.then_some(())
        })
        .await;
    }
    running.send(fleet, "before").await;
    for (scope, subscriber) in &running.subscribers {
        let expected: BTreeSet<String> =
            mail_of(*scope).iter().map(|sent| subject("before", *sent)).collect();
        eventually(&format!("{} receives {expected:?}", running.name(*scope, subscriber)), || async {
            (subjects(subscriber, "before") == expected).then_some(())
        })
        .await;
    }
    running
}

impl RunningRow {
    /// Sends a mail to each address, last to the one that is readable longest: whoever receives that one has received
    /// the others.
    async fn send(&self, fleet: &Fleet, when: &str) {
        for scope in [Scope::Shared, Scope::Free, Scope::DomainAddress, Scope::DomainMailbox, Scope::Mailbox]
        {
            let message = message("Ada <ada@client.example>", &subject(when, scope), "");
            let address = self.fixture.address(scope);
            // Rejected where the address does not exist any more, and deferred while Postgres is busy.
            eventually("a mail is not deferred", || async {
                let reply = send_mail(fleet.smtp(0), "ada@client.example", &address, &message).await;
                (reply.status() != "451 4.3.0").then_some(())
            })
            .await;
        }
    }

    /// Waits for the expected rejections; returns their times since the cause, and what is wrong with them.
    async fn rejections(&self, applied: Instant) -> (Vec<(String, Duration)>, Vec<String>) {
        let (mut times, mut wrong) = (Vec::new(), Vec::new());
        for (scope, subscriber) in &self.subscribers {
            let Some(outcome) = self.row.outcome(*scope, subscriber.transport()) else { continue };
            let name = self.name(*scope, subscriber);
            let (at, rejection) =
                eventually(&format!("{name} is rejected"), || async { subscriber.received().ended }).await;
            if rejection != over(outcome, subscriber.transport()) {
                wrong.push(format!("{name}: expected {outcome:?}, got {rejection:?}"));
            }
            times.push((name, at.saturating_duration_since(applied)));
        }
        (times, wrong)
    }

    /// Sends further mail; returns what is wrong with reconnects and with what is received.
    async fn later_mail(&self, fleet: &Fleet) -> Vec<String> {
        self.send(fleet, "later").await;
        let mut wrong = Vec::new();
        for (scope, subscriber) in &self.subscribers {
            let (name, transport) = (self.name(*scope, subscriber), subscriber.transport());
            let outcome = self.row.outcome(*scope, transport);
            if let Some(outcome) = outcome {
                let rejection = subscriber.reconnect().await;
                if rejection != over(outcome, transport) {
                    wrong.push(format!("{name}: expected {outcome:?} on a reconnect, got {rejection:?}"));
                }
            }
            let expected = self.row.received_later(*scope, transport);
            let give_up = Instant::now() + DEADLINE;
            while !subjects(subscriber, "later").is_superset(&expected) && Instant::now() < give_up {
                sleep(Duration::from_millis(20)).await;
            }
            let received = subjects(subscriber, "later");
            if received != expected {
                wrong.push(format!("{name}: expected {expected:?}, received {received:?}"));
            }
            let ended = subscriber.received().ended;
            if outcome == ON && ended.is_some() {
                wrong.push(format!("{name}: expected to stay connected, got {ended:?}"));
            }
        }
        wrong
    }

    fn name(&self, scope: Scope, subscriber: &Subscriber) -> String {
        format!("{}: {scope:?}, {:?}", self.row.name, subscriber.transport())
    }
}

/// An outcome as a subscriber gets it: the error of a WebSocket has a close code instead of a status.
fn over((status, code): (u16, &str), transport: &Transport) -> (u16, String) {
    let status = if matches!(transport, Transport::WebSocket { .. }) { 1008 } else { status };
    (status, code.to_owned())
}

fn subjects(subscriber: &Subscriber, when: &str) -> BTreeSet<String> {
    subscriber.received().subjects.into_iter().filter(|subject| subject.starts_with(when)).collect()
}
