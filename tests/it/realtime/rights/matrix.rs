//! What ends, and who is told what.
//!
//! A row is a way in which rights end, played in a world of its own. A column is what is listened
//! to, in every way that there is: long-polls, streams of events, WebSockets, requests of a Pro
//! session. A cell is what they are told, or `ON`: rightly not affected, and told of later mail.
//!
//! Whoever listens does so at the second of two processes, and what ends rights happens at the
//! first or in a command. All rows are played at once, so that the 6 s of the rule are waited once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tempmail_runtime::config::DnsMode;
use tempmail_tests::smtp::{message, send_mail};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, RedisServer, TestDns};
use tokio::time::sleep_until;

use super::ending::Ending;
use super::listener::{Listener, Way};
use super::world::{Place, World};

/// How long a right may be felt after its end.
const ENDED_WITHIN: Duration = Duration::from_secs(5);
/// How long after the end mail is sent that must reach nobody.
const MAIL_AFTER: Duration = Duration::from_secs(6);

/// What somebody who listens is told; nothing where it goes on.
type Cell = Option<(u16, &'static str)>;

const ON: Cell = None;
const TOKEN: Cell = Some((401, "invalid_token"));
const EXPIRED: Cell = Some((440, "session_expired"));
const DISABLED: Cell = Some((403, "account_disabled"));
const MISSING: Cell = Some((404, "not_found"));

/// Places that are read with live tokens, over `/v1`.
const READ_WITH_TOKENS: [Place; 6] =
    [Place::Mailbox, Place::DomainMailbox, Place::DomainAddress, Place::Shared, Place::Domain, Place::Owned];
/// Mailboxes that their JWTs watch.
const WATCHED: [Place; 3] = [Place::Mailbox, Place::DomainMailbox, Place::Free];

/// A row: for tokens by place, for sockets by mailbox, and for a Pro session.
struct Row {
    ending: Ending,
    name: &'static str,
    tokens: [Cell; 6],
    sockets: [Cell; 3],
    session: Cell,
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let row = |ending, name, tokens, sockets, session| Row { ending, name, tokens, sockets, session };
    vec![
        // A live token and a mailbox' JWT know nothing of each other; a session dies with its token.
        //                                                       mailbox   its other  another   shared    the whole  all that   mailbox   its other free      Pro
        //                                                                 under the domain     inbox     domain     is owned   socket    socket    socket    session
        row(Ending::TokenRevoked,          "revoked",           [TOKEN,    TOKEN,     TOKEN,    TOKEN,    TOKEN,     TOKEN],   [ON,       ON,       ON],      TOKEN),
        row(Ending::TokenRevokedByCommand, "revoked-by-hand",   [TOKEN,    TOKEN,     TOKEN,    TOKEN,    TOKEN,     TOKEN],   [ON,       ON,       ON],      TOKEN),
        row(Ending::TokenExpires,          "expires",           [EXPIRED,  EXPIRED,   EXPIRED,  EXPIRED,  EXPIRED,   EXPIRED], [ON,       ON,       ON],      EXPIRED),
        row(Ending::ExpiryBroughtForward,  "expires-sooner",    [EXPIRED,  EXPIRED,   EXPIRED,  EXPIRED,  EXPIRED,   EXPIRED], [ON,       ON,       ON],      EXPIRED),
        row(Ending::TenantSuspended,       "suspended",         [DISABLED, DISABLED,  DISABLED, DISABLED, DISABLED,  DISABLED],[DISABLED, DISABLED, ON],      DISABLED),
        row(Ending::TenantDeleted,         "deleted",           [TOKEN,    TOKEN,     TOKEN,    TOKEN,    TOKEN,     TOKEN],   [TOKEN,    TOKEN,    ON],      TOKEN),
        // Only the JWTs rest on the password.
        row(Ending::PasswordReset,         "reset",             [ON,       ON,        ON,       ON,       ON,        ON],      [TOKEN,    TOKEN,    ON],      ON),
        // Under a custom domain the address is the tenant's without its mailbox, too.
        row(Ending::MailboxDeleted,        "unboxed",           [MISSING,  ON,        ON,       ON,       ON,        ON],      [TOKEN,    TOKEN,    ON],      ON),
        row(Ending::MailboxDeletedByOwner, "unboxed-by-owner",  [MISSING,  ON,        ON,       ON,       ON,        ON],      [TOKEN,    TOKEN,    TOKEN],   ON),
        row(Ending::MailboxIdle,           "idle",              [ON,       ON,        ON,       ON,       ON,        ON],      [ON,       ON,       TOKEN],   ON),
        row(Ending::DomainLost,            "lost",              [ON,       MISSING,   MISSING,  ON,       MISSING,   ON],      [ON,       TOKEN,    ON],      ON),
        row(Ending::DomainHandedOver,      "handed-over",       [ON,       MISSING,   MISSING,  ON,       MISSING,   ON],      [ON,       TOKEN,    ON],      ON),
        row(Ending::DomainDeleted,         "dropped",           [ON,       MISSING,   MISSING,  ON,       MISSING,   ON],      [ON,       TOKEN,    ON],      ON),
        row(Ending::SharedInboxesOff,      "closed",            [ON,       ON,        ON,       MISSING,  ON,        ON],      [ON,       ON,       ON],      ON),
        row(Ending::SystemDomainRemoved,   "removed",           [MISSING,  ON,        ON,       MISSING,  ON,        ON],      [TOKEN,    ON,       TOKEN],   ON),
    ]
}

impl Row {
    fn cell(&self, place: Place, way: &Way) -> Cell {
        let at = |places: &[Place]| places.iter().position(|it| *it == place).unwrap();
        match way {
            Way::Session { .. } => self.session,
            Way::Socket { .. } => self.sockets[at(&WATCHED)],
            Way::Polls { .. } | Way::Stream { .. } => self.tokens[at(&READ_WITH_TOKENS)],
        }
    }

    /// What is met at a place of the mail that is sent to each address once its rights ended.
    fn met_later(&self, place: Place, way: &Way) -> BTreeSet<String> {
        let still = |sent: &Place| matches!(way, Way::Socket { .. }) || self.cell(*sent, way) == ON;
        met(place).iter().filter(|sent| still(sent)).map(|sent| subject("later", *sent)).collect()
    }
}

/// Places whose mail is met at a place.
fn met(place: Place) -> &'static [Place] {
    match place {
        Place::Account => &[],
        Place::Owned => &[Place::Mailbox, Place::DomainMailbox, Place::DomainAddress],
        Place::Domain => &[Place::DomainMailbox, Place::DomainAddress],
        Place::Mailbox => &[Place::Mailbox],
        Place::DomainMailbox => &[Place::DomainMailbox],
        Place::DomainAddress => &[Place::DomainAddress],
        Place::Shared => &[Place::Shared],
        Place::Free => &[Place::Free],
    }
}

fn subject(when: &str, place: Place) -> String {
    format!("{when} {place:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_is_told_within_5_s_that_its_right_has_ended() {
    play(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_while_redis_is_away() {
    play(true).await;
}

/// A row that is being played.
struct Scene {
    row: Row,
    world: World,
    listeners: Vec<(Place, Listener)>,
}

async fn play(without_redis: bool) {
    let mut redis = RedisServer::new();
    let dns = TestDns::start().await;
    let fleet = Fleet::builder()
        .ingests(1)
        .redis(&redis.url())
        .config(|config| config.dns = dns.settings(DnsMode::Authoritative))
        .start()
        .await;
    let worlds = join_all(rows().into_iter().map(|row| async {
        let world = World::make(&fleet, row.name).await;
        (row, world)
    }));
    let (last, first): (Vec<_>, Vec<_>) =
        worlds.await.into_iter().partition(|(row, _)| row.ending.comes_by_itself());
    let mut scenes = join_all(first.into_iter().map(|(row, world)| open(&fleet, &dns, row, world))).await;
    if without_redis {
        redis.stop();
    }
    scenes.extend(join_all(last.into_iter().map(|(row, world)| open(&fleet, &dns, row, world))).await);

    let endings = scenes.iter().map(|scene| scene.row.ending.happen(&fleet, &dns, &scene.world));
    let ended = join_all(endings).await;
    let checks = scenes.iter().zip(&ended).map(|(scene, ended)| scene.is_told(*ended));
    let mut wrong = join_all(checks).await.concat();
    let last = ended.iter().max().unwrap();
    sleep_until((*last + MAIL_AFTER).into()).await;
    wrong.extend(join_all(scenes.iter().map(|scene| scene.later(&fleet))).await.concat());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Prepares a row: everybody listens, and has met a first mail.
async fn open(fleet: &Fleet, dns: &TestDns, row: Row, world: World) -> Scene {
    row.ending.prepare(fleet, dns, &world).await;
    let listeners = world.listen(fleet.http(1));
    let scene = Scene { row, world, listeners };
    for (place, listener) in &scene.listeners {
        eventually(&format!("{} {place:?} {:?} listens", scene.row.name, listener.way()), || async {
            listener.seen().listens.then_some(())
        })
        .await;
    }
    scene.send(fleet, "before").await;
    for (place, listener) in &scene.listeners {
        let expected: BTreeSet<String> = met(*place).iter().map(|sent| subject("before", *sent)).collect();
        eventually(
            &format!("{} {place:?} {:?} meets {expected:?}", scene.row.name, listener.way()),
            || async { (subjects(listener, "before") == expected).then_some(()) },
        )
        .await;
    }
    scene
}

impl Scene {
    /// Sends a mail to each address. That of whoever goes on longest is the last, so that who has
    /// met it has met what was sent before.
    async fn send(&self, fleet: &Fleet, when: &str) {
        for place in [Place::Shared, Place::Free, Place::DomainAddress, Place::DomainMailbox, Place::Mailbox]
        {
            let message = message("Ada <ada@client.example>", &subject(when, place), "");
            // Where the address is nobody's any more it is refused.
            send_mail(fleet.smtp(0), "ada@client.example", &self.world.address(place), &message).await;
        }
    }

    /// What is wrong with what they are told, once they had the time to be told.
    async fn is_told(&self, ended: Instant) -> Vec<String> {
        sleep_until((ended + ENDED_WITHIN).into()).await;
        let told = self.listeners.iter().map(|(place, listener)| {
            let expected = self.row.cell(*place, listener.way());
            let told = listener.seen().ended;
            let within_deadline =
                told.as_ref().is_none_or(|(at, _)| at.saturating_duration_since(ended) <= ENDED_WITHIN);
            let told = told.map(|(_, refusal)| refusal);
            let right = within_deadline && told == expected.map(|cell| as_told(cell, listener.way()));
            (!right).then(|| self.wrong(*place, listener, &format!("{expected:?}"), &format!("{told:?}")))
        });
        told.flatten().collect()
    }

    /// What is wrong with what they meet of the mail that comes later.
    async fn later(&self, fleet: &Fleet) -> Vec<String> {
        self.send(fleet, "later").await;
        let mut wrong = Vec::new();
        for (place, listener) in &self.listeners {
            let Some(cell) = self.row.cell(*place, listener.way()) else { continue };
            let again = listener.again().await;
            if again != as_told(cell, listener.way()) {
                wrong.push(self.wrong(
                    *place,
                    listener,
                    "the same when it comes again",
                    &format!("{again:?}"),
                ));
            }
        }
        for (place, listener) in &self.listeners {
            let expected = match self.row.cell(*place, listener.way()) {
                ON => self.row.met_later(*place, listener.way()),
                Some(_) => BTreeSet::new(),
            };
            let give_up = Instant::now() + MAIL_AFTER;
            while !subjects(listener, "later").is_superset(&expected) && Instant::now() < give_up {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let met = subjects(listener, "later");
            if met != expected {
                wrong.push(self.wrong(*place, listener, &format!("{expected:?}"), &format!("{met:?}")));
            }
        }
        wrong
    }

    fn wrong(&self, place: Place, listener: &Listener, expected: &str, found: &str) -> String {
        format!("{}: {place:?}, {:?}: expected {expected}, found {found}", self.row.name, listener.way())
    }
}

/// A cell as its reader is told it: the error of a WebSocket has no status.
fn as_told((status, code): (u16, &str), way: &Way) -> (u16, String) {
    let status = if matches!(way, Way::Socket { .. }) { 1008 } else { status };
    (status, code.to_owned())
}

fn subjects(listener: &Listener, when: &str) -> BTreeSet<String> {
    listener.seen().subjects.into_iter().filter(|subject| subject.starts_with(when)).collect()
}
