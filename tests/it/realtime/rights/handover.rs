//! What changes hands while everybody listens and mail flows: the former readers' polls, streams,
//! sockets, cursors and ids give them nothing of the new owner's, who gets all of it.

use std::collections::BTreeSet;

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::DnsMode;
use tempmail_tests::app::Mailbox;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet, RedisServer, Tenant, TestDns};
use uuid::Uuid;

use super::ending::take_over;
use super::flow::Flow;
use super::listener::{Listener, Way};

/// Mails that are to come before anything is changed.
const SOME: usize = 20;

/// A process to listen at, and who listens.
struct Party<'a> {
    fleet: &'a Fleet,
    tenant: &'a Tenant,
}

impl Party<'_> {
    async fn polls(&self, path: &str, cursor: Option<String>) -> Listener {
        let token = self.fleet.token(self.tenant, TokenKind::Live).await;
        Listener::start(self.fleet.http(1), Way::Polls { path: path.to_owned(), token }, cursor)
    }

    async fn stream(&self, address: Option<&str>, cursor: Option<String>) -> Listener {
        let way = Way::Stream { address: address.map(str::to_owned), token: self.tenant.live.clone() };
        let listener = Listener::start(self.fleet.http(1), way, cursor);
        listens(&listener).await;
        listener
    }

    /// The status of a message by its id.
    async fn reads(&self, id: &str) -> u16 {
        let path = format!("/v1/email/{id}");
        self.fleet.request(1, Method::GET, &path).live(&self.tenant.live).send().await.status
    }
}

async fn socket(fleet: &Fleet, mailbox: &Mailbox) -> Listener {
    let listener = Listener::start(fleet.http(1), Way::Socket { jwt: mailbox.jwt.clone() }, None);
    listens(&listener).await;
    listener
}

async fn listens(listener: &Listener) {
    eventually("it listens", || async { listener.seen().listens.then_some(()) }).await;
}

/// Waits until it has met so many mails in all.
async fn meets(listener: &Listener, count: usize) {
    let what = format!("{:?} meets {count} mails", listener.way());
    eventually(&what, || async {
        let seen = listener.seen();
        assert!(seen.ended.is_none(), "{seen:?}");
        (seen.ids.len() >= count).then_some(())
    })
    .await;
}

/// Waits until it is refused.
async fn is_refused(listener: &Listener, status: u16, code: &str) {
    let what = format!("{:?} is refused", listener.way());
    let told = eventually(&what, || async { listener.seen().ended }).await;
    assert_eq!(told.1, (status, code.to_owned()), "{:?}", listener.way());
}

/// Waits until it has met exactly the stored messages of an owner, in the order of the stream.
async fn met_all_of(listener: &Listener, fleet: &Fleet, owner: Uuid) {
    let stored = stored(fleet, owner).await;
    assert!(stored.len() >= SOME, "{} are too few to tell", stored.len());
    meets(listener, stored.len()).await;
    assert_eq!(listener.seen().ids, stored, "{:?}", listener.way());
}

/// Waits until it has met the newest message of an owner.
async fn meets_last_of(listener: &Listener, fleet: &Fleet, owner: Uuid) {
    let last = stored(fleet, owner).await.pop();
    eventually("it meets the last mail", || async {
        (listener.seen().ids.last() == last.as_ref()).then_some(())
    })
    .await;
}

/// Ids of the messages of an owner.
async fn stored(fleet: &Fleet, owner: Uuid) -> Vec<String> {
    sqlx::query_scalar("SELECT id::text FROM message WHERE owner = $1 ORDER BY seq")
        .bind(owner)
        .fetch_all(&fleet.pool)
        .await
        .unwrap()
}

fn ids(listeners: &[&Listener]) -> BTreeSet<String> {
    listeners.iter().flat_map(|listener| listener.seen().ids).collect()
}

/// A cursor of a listener that has met something.
fn cursor(listener: &Listener) -> String {
    listener.seen().cursor.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_from_one_tenant_to_another() {
    let (redis, dns) = (RedisServer::new(), TestDns::start().await);
    dns.domain("ships.test", 1).await;
    let fleet = Fleet::builder()
        .redis(&redis.url())
        .config(|config| config.dns = dns.settings(DnsMode::Authoritative))
        .start()
        .await;
    let buyer = fleet.another_tenant("lighthouse").await;
    let former = fleet.custom_domain(&fleet.tenant, "ships.test").await;
    let desk = fleet.mailbox(Some(&fleet.tenant.pro), "desk@ships.test").await;
    let (ours, theirs) =
        (Party { fleet: &fleet, tenant: &fleet.tenant }, Party { fleet: &fleet, tenant: &buyer });

    let lost = [
        ours.polls("/v1/inbox/any@ships.test", None).await,
        ours.polls("/v1/inbox/desk@ships.test", None).await,
        ours.polls("/v1/domain/ships.test", None).await,
        ours.stream(Some("any@ships.test"), None).await,
        ours.stream(Some("desk@ships.test"), None).await,
    ];
    let kept = [ours.polls("/v1/me", None).await, ours.stream(None, None).await];
    let socket = socket(&fleet, &desk).await;
    let gained = [theirs.polls("/v1/me", None).await, theirs.stream(None, None).await];

    let beginning = cursor(&gained[1]);
    let flow = Flow::start(&fleet, &["any@ships.test", "desk@ships.test", "noise@inbox.localhost"]);
    for listener in lost.iter().chain(&kept).chain([&socket]) {
        meets(listener, SOME).await;
    }
    take_over(&fleet, &dns, &buyer, "ships.test").await;
    for listener in &lost {
        is_refused(listener, 404, "not_found").await;
    }
    is_refused(&socket, 1008, "invalid_token").await;
    for listener in &gained {
        meets(listener, SOME).await;
    }
    flow.stop().await;

    let owner: Uuid = sqlx::query_scalar("SELECT id FROM domain WHERE tenant = $1")
        .bind(buyer.id)
        .fetch_one(&fleet.pool)
        .await
        .unwrap();
    assert_ne!(owner, former);
    for listener in &gained {
        met_all_of(listener, &fleet, owner).await;
    }
    let new: BTreeSet<String> = stored(&fleet, owner).await.into_iter().collect();
    let all_of_ours: Vec<&Listener> = lost.iter().chain(&kept).chain([&socket]).collect();
    let old = ids(&all_of_ours);
    assert!(old.is_disjoint(&new));
    for id in old.iter().take(SOME) {
        assert_eq!((ours.reads(id).await, theirs.reads(id).await), (404, 404), "{id}");
    }
    for id in new.iter().take(SOME) {
        assert_eq!((ours.reads(id).await, theirs.reads(id).await), (404, 200), "{id}");
    }

    // Every former cursor is still a place in the stream, from which the rest of what is ours comes.
    let office = fleet.mailbox(Some(&fleet.tenant.pro), "office@inbox.localhost").await;
    fleet.deliver(0, &office.address, "ours").await;
    for listener in &lost {
        let again = ours.polls("/v1/me", Some(cursor(listener))).await;
        meets(&again, 1).await;
        assert_eq!(again.seen().subjects, ["ours"]);
    }
    for listener in &kept {
        eventually("what is ours comes", || async {
            (listener.seen().subjects.last()? == "ours").then_some(())
        })
        .await;
    }
    assert!(ids(&all_of_ours).is_disjoint(&new));
    // The buyer's cursors are nobody else's.
    let path = format!("/v1/me?since={}", cursor(&gained[0]));
    fleet
        .request(1, Method::GET, &path)
        .live(&fleet.tenant.live)
        .send()
        .await
        .is_v1_error(400, "invalid_request");
    // From the beginning on, all of it and nothing else is the buyer's.
    let whole = theirs.polls("/v1/domain/ships.test", Some(beginning)).await;
    met_all_of(&whole, &fleet, owner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_from_everybody_to_a_mailbox_to_nobody_to_the_next_mailbox() {
    const ADDRESS: &str = "name@inbox.localhost";
    const PATH: &str = "/v1/inbox/name@inbox.localhost";
    let redis = RedisServer::new();
    let fleet = Fleet::builder().redis(&redis.url()).start().await;
    let stranger = fleet.another_tenant("lighthouse").await;
    let (ours, others) =
        (Party { fleet: &fleet, tenant: &fleet.tenant }, Party { fleet: &fleet, tenant: &stranger });
    let lost = [others.polls(PATH, None).await, others.stream(Some(ADDRESS), None).await];
    let kept = [ours.polls(PATH, None).await, ours.stream(Some(ADDRESS), None).await];
    let owned = [ours.stream(None, None).await, others.stream(None, None).await];
    let flow = Flow::start(&fleet, &[ADDRESS, "noise@inbox.localhost"]);
    for listener in lost.iter().chain(&kept) {
        meets(listener, SOME).await;
    }

    // To a mailbox, which begins empty: who made it reads on, and nobody else.
    let first = fleet.mailbox(Some(&fleet.tenant.pro), ADDRESS).await;
    let first_socket = socket(&fleet, &first).await;
    for listener in &lost {
        is_refused(listener, 404, "not_found").await;
    }
    for listener in kept.iter().chain([&owned[0], &first_socket]) {
        meets(listener, listener.seen().ids.len() + SOME).await;
    }
    let shared = stored(&fleet, Uuid::nil()).await;
    let of_first: BTreeSet<String> = stored(&fleet, first.id).await.into_iter().collect();
    for id in ids(&[&lost[0], &lost[1]]) {
        assert_eq!((ours.reads(&id).await, others.reads(&id).await), (404, 404), "{id}");
    }

    // To nobody: the address is held.
    let gone = fleet.request(0, Method::DELETE, "/api/me").bearer(&first.jwt).send().await;
    assert_eq!(gone.status, 204);
    for listener in &kept {
        is_refused(listener, 404, "not_found").await;
    }
    is_refused(&first_socket, 1008, "invalid_token").await;

    // To the next mailbox, of the same tenant, whose cursors are still good.
    let second = fleet.mailbox(Some(&fleet.tenant.pro), ADDRESS).await;
    assert_ne!(first.id, second.id);
    let again = [
        ours.polls(PATH, Some(cursor(&kept[0]))).await,
        ours.stream(Some(ADDRESS), Some(cursor(&kept[1]))).await,
    ];
    let second_socket = socket(&fleet, &second).await;
    for listener in again.iter().chain([&second_socket]) {
        meets(listener, SOME).await;
    }
    flow.stop().await;
    let of_second: BTreeSet<String> = stored(&fleet, second.id).await.into_iter().collect();
    for listener in &again {
        met_all_of(listener, &fleet, second.id).await;
    }
    // What came before a socket was there is in the mailbox' list; what came later is pushed.
    for listener in [&second_socket, &owned[0]] {
        meets_last_of(listener, &fleet, second.id).await;
    }
    assert!(ids(&[&second_socket]).is_subset(&of_second));

    let shared: BTreeSet<String> = shared.into_iter().collect();
    assert!(ids(&[&lost[0], &lost[1]]).is_subset(&shared));
    assert!(ids(&[&kept[0], &kept[1], &first_socket]).is_disjoint(&of_second));
    assert!(owned[1].seen().ids.is_empty(), "the stranger owns none of it");
    let owned = ids(&[&owned[0]]);
    assert!(owned.is_superset(&of_second) && owned.is_disjoint(&shared));
    for id in of_first.iter().take(SOME) {
        assert_eq!((ours.reads(id).await, others.reads(id).await), (404, 404), "{id}");
    }
    for id in of_second.iter().take(SOME) {
        assert_eq!((ours.reads(id).await, others.reads(id).await), (200, 404), "{id}");
    }
    let path = format!("{PATH}?since={}", cursor(&lost[0]));
    fleet.request(1, Method::GET, &path).live(&stranger.live).send().await.is_v1_error(404, "not_found");
    // The stranger's cursor is still a place in the stream, from which what it may read comes.
    let noise = others.polls("/v1/inbox/noise@inbox.localhost", Some(cursor(&lost[0]))).await;
    meets(&noise, SOME).await;
    let shared: BTreeSet<String> = stored(&fleet, Uuid::nil()).await.into_iter().collect();
    assert!(ids(&[&noise]).is_subset(&shared));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_whose_hold_is_over_from_one_tenant_to_another() {
    const ADDRESS: &str = "name@inbox.localhost";
    const PATH: &str = "/v1/inbox/name@inbox.localhost";
    let app = App::start().await;
    let next = app.another_tenant("lighthouse").await;
    let polls = |live: &str, path: &str, cursor| {
        let way = Way::Polls { path: path.to_owned(), token: live.to_owned() };
        Listener::start(app.http(), way, cursor)
    };
    let stream = |live: &str, address: Option<&str>, cursor| {
        let way = Way::Stream { address: address.map(str::to_owned), token: live.to_owned() };
        Listener::start(app.http(), way, cursor)
    };
    let live = [
        app.token(&app.tenant, TokenKind::Live).await,
        app.token(&app.tenant, TokenKind::Live).await,
        app.token(&app.tenant, TokenKind::Live).await,
    ];
    let everything = [polls(&live[0], "/v1/me", None), stream(&live[0], None, None)];
    let next_everything = [polls(&next.live, "/v1/me", None), stream(&next.live, None, None)];
    for listener in everything.iter().chain(&next_everything) {
        listens(listener).await;
    }

    // Ours, and deleted.
    let ours = app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    let before = [polls(&live[1], PATH, None), stream(&live[1], Some(ADDRESS), None)];
    listens(&before[1]).await;
    app.deliver(ADDRESS, "ours", "").await;
    for listener in before.iter().chain(&everything) {
        meets(listener, 1).await;
    }
    assert_eq!(app.request(Method::DELETE, "/api/me").bearer(&ours.jwt).send().await.status, 204);
    for listener in &before {
        is_refused(listener, 404, "not_found").await;
    }

    // Everybody's, after the hold. The former cursors are good there, too.
    app.advance_hours(32 * 24);
    app.worker_pass().await;
    let between = [
        polls(&live[2], PATH, Some(cursor(&before[0]))),
        stream(&live[2], Some(ADDRESS), Some(cursor(&before[1]))),
    ];
    listens(&between[1]).await;
    app.deliver(ADDRESS, "everybody's", "").await;
    for listener in &between {
        meets(listener, 1).await;
        assert_eq!(listener.seen().subjects, ["everybody's"]);
    }

    // The next tenant's.
    let theirs = app.mailbox(Some(&next.pro), ADDRESS).await;
    let socket = Listener::start(app.http(), Way::Socket { jwt: theirs.jwt.clone() }, None);
    listens(&socket).await;
    let expected: Vec<String> = (0..SOME).map(|number| format!("theirs {number}")).collect();
    for subject in &expected {
        app.deliver(ADDRESS, subject, "").await;
    }
    for listener in &between {
        is_refused(listener, 404, "not_found").await;
    }
    for listener in next_everything.iter().chain([&socket]) {
        meets(listener, SOME).await;
        assert_eq!(listener.seen().subjects, expected, "{:?}", listener.way());
    }
    for (listener, met) in before.iter().chain(&everything).zip([["ours"]; 4]) {
        assert_eq!(listener.seen().subjects, met, "{:?}", listener.way());
    }
    for id in socket.seen().ids {
        app.get(&format!("/v1/email/{id}")).await.is_v1_error(404, "not_found");
    }
    // What is ours reaches those who stayed.
    let office = app.mailbox(Some(&app.tenant.pro), "office@inbox.localhost").await;
    app.deliver(&office.address, "ours again", "").await;
    for listener in &everything {
        meets(listener, 2).await;
        assert_eq!(listener.seen().subjects, ["ours", "ours again"], "{:?}", listener.way());
    }
}
