//! A domain or an address gets another owner while mail arrives for its subscribers: long-polls, streams, sockets,
//! cursors and ids of the former readers give access to nothing of the new owner, who receives all of it.

use std::collections::BTreeSet;

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::DnsMode;
use tempmail_tests::app::Mailbox;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet, RedisServer, Tenant, TestDns};
use uuid::Uuid;

use super::cause::take_over;
use super::fixture::BackgroundMail;
use super::subscriber::{Subscriber, Transport};

/// Mails to receive before the next change.
const MAILS: usize = 20;

const DOMAIN: &str = "ships.test";
const ADDRESS: &str = "name@inbox.localhost";
const INBOX: &str = "/v1/inbox/name@inbox.localhost";

/// A tenant that subscribes at the second API process.
struct TenantClient<'a> {
    fleet: &'a Fleet,
    tenant: &'a Tenant,
}

impl TenantClient<'_> {
    async fn long_poll(&self, path: &str, cursor: Option<String>) -> Subscriber {
        let token = self.fleet.token(self.tenant, TokenKind::Live).await;
        let transport = Transport::LongPoll { path: path.to_owned(), token };
        Subscriber::start(self.fleet.http(1), transport, cursor)
    }

    async fn stream(&self, address: Option<&str>, cursor: Option<String>) -> Subscriber {
        let transport =
            Transport::Sse { address: address.map(str::to_owned), token: self.tenant.live.clone() };
        let subscriber = Subscriber::start(self.fleet.http(1), transport, cursor);
        ready(&subscriber).await;
        subscriber
    }

    /// The status of `GET /v1/email/<id>`.
    async fn status_of(&self, id: &str) -> u16 {
        let path = format!("/v1/email/{id}");
        self.fleet.request(1, Method::GET, &path).live(&self.tenant.live).send().await.status
    }
}

async fn socket(fleet: &Fleet, mailbox: &Mailbox) -> Subscriber {
    let transport = Transport::WebSocket { jwt: mailbox.jwt.clone() };
    let subscriber = Subscriber::start(fleet.http(1), transport, None);
    ready(&subscriber).await;
    subscriber
}

async fn ready(subscriber: &Subscriber) {
    eventually("it is subscribed", || async { subscriber.received().is_ready.then_some(()) }).await;
}

/// Waits until it has received so many mails in all.
async fn receives(subscriber: &Subscriber, count: usize) {
    eventually(&format!("{:?} receives {count} mails", subscriber.transport()), || async {
        let received = subscriber.received();
        assert!(received.ended.is_none(), "{received:?}");
        (received.ids.len() >= count).then_some(())
    })
    .await;
}

/// Waits until it is rejected.
async fn rejected(subscriber: &Subscriber, status: u16, code: &str) {
    let what = format!("{:?} is rejected", subscriber.transport());
    let (_, rejection) = eventually(&what, || async { subscriber.received().ended }).await;
    assert_eq!(rejection, (status, code.to_owned()), "{:?}", subscriber.transport());
}

/// Waits until it has received exactly the stored messages of an owner, in stream order.
async fn receives_all_of(subscriber: &Subscriber, fleet: &Fleet, owner: Uuid) {
    let stored = stored(fleet, owner).await;
    assert!(stored.len() >= MAILS, "only {} are stored", stored.len());
    receives(subscriber, stored.len()).await;
    assert_eq!(subscriber.received().ids, stored, "{:?}", subscriber.transport());
}

/// Waits until it has received the newest message of an owner.
async fn receives_last_of(subscriber: &Subscriber, fleet: &Fleet, owner: Uuid) {
    let last = stored(fleet, owner).await.pop();
    eventually("it receives the last mail", || async {
        (subscriber.received().ids.last() == last.as_ref()).then_some(())
    })
    .await;
}

async fn receives_subject(subscriber: &Subscriber, subject: &str) {
    eventually(&format!("it receives `{subject}`"), || async {
        (subscriber.received().subjects.last()? == subject).then_some(())
    })
    .await;
}

/// Ids of the messages of an owner, in stream order.
async fn stored(fleet: &Fleet, owner: Uuid) -> Vec<String> {
    sqlx::query_scalar("SELECT id::text FROM message WHERE owner = $1 ORDER BY seq")
        .bind(owner)
        .fetch_all(&fleet.pool)
        .await
        .unwrap()
}

async fn stored_set(fleet: &Fleet, owner: Uuid) -> BTreeSet<String> {
    stored(fleet, owner).await.into_iter().collect()
}

fn ids<'a>(subscribers: impl IntoIterator<Item = &'a Subscriber>) -> BTreeSet<String> {
    subscribers.into_iter().flat_map(|subscriber| subscriber.received().ids).collect()
}

/// The cursor of a subscriber that has received something.
fn cursor(subscriber: &Subscriber) -> String {
    subscriber.received().cursor.unwrap()
}

/// Asserts the status of some of these messages for two tenants.
async fn assert_statuses(
    ids: &BTreeSet<String>,
    first: (&TenantClient<'_>, u16),
    second: (&TenantClient<'_>, u16),
) {
    for id in ids.iter().take(MAILS) {
        let statuses = (first.0.status_of(id).await, second.0.status_of(id).await);
        assert_eq!(statuses, (first.1, second.1), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn moves_readers_of_a_domain_to_its_new_tenant() {
    let (redis, dns) = (RedisServer::new(), TestDns::start().await);
    dns.domain(DOMAIN, 1).await;
    let fleet = Fleet::builder()
        .redis(&redis.url())
        .config(|config| config.dns = dns.settings(DnsMode::Authoritative))
        .start()
        .await;
    let buyer = fleet.another_tenant("lighthouse").await;
    let former_domain = fleet.custom_domain(&fleet.tenant, DOMAIN).await;
    let mailbox = fleet.mailbox(Some(&fleet.tenant.pro), "desk@ships.test").await;
    let seller = TenantClient { fleet: &fleet, tenant: &fleet.tenant };
    let buyer = TenantClient { fleet: &fleet, tenant: &buyer };

    let of_domain = [
        seller.long_poll("/v1/inbox/any@ships.test", None).await,
        seller.long_poll("/v1/inbox/desk@ships.test", None).await,
        seller.long_poll("/v1/domain/ships.test", None).await,
        seller.stream(Some("any@ships.test"), None).await,
        seller.stream(Some("desk@ships.test"), None).await,
    ];
    let of_seller = [seller.long_poll("/v1/me", None).await, seller.stream(None, None).await];
    let of_mailbox = socket(&fleet, &mailbox).await;
    let stream = buyer.stream(None, None).await;
    let before = cursor(&stream);
    // Without a cursor, a wait that begins late on a busy machine would return the newest mail only.
    let of_buyer = [buyer.long_poll("/v1/me", Some(before.clone())).await, stream];

    let mail = BackgroundMail::start(&fleet, &["any@ships.test", "desk@ships.test", "noise@inbox.localhost"]);
    for subscriber in of_domain.iter().chain(&of_seller).chain([&of_mailbox]) {
        receives(subscriber, MAILS).await;
    }
    take_over(&fleet, &dns, buyer.tenant, DOMAIN).await;
    for subscriber in &of_domain {
        rejected(subscriber, 404, "not_found").await;
    }
    rejected(&of_mailbox, 1008, "invalid_token").await;
    for subscriber in &of_buyer {
        receives(subscriber, MAILS).await;
    }
    mail.stop().await;

    let new_domain = domain_of(&fleet, buyer.tenant).await;
    assert_ne!(new_domain, former_domain);
    for subscriber in &of_buyer {
        receives_all_of(subscriber, &fleet, new_domain).await;
    }
    let new = stored_set(&fleet, new_domain).await;
    let of_former = || of_domain.iter().chain(&of_seller).chain([&of_mailbox]);
    let old = ids(of_former());
    assert!(old.is_disjoint(&new));
    assert_statuses(&old, (&seller, 404), (&buyer, 404)).await;
    assert_statuses(&new, (&seller, 404), (&buyer, 200)).await;
    assert_cursors_of_seller(&seller, &of_domain, &of_seller).await;
    assert!(ids(of_former()).is_disjoint(&new));
    assert_cursors_of_buyer(&seller, &buyer, &of_buyer[0], before, new_domain).await;
}

async fn domain_of(fleet: &Fleet, tenant: &Tenant) -> Uuid {
    sqlx::query_scalar("SELECT id FROM domain WHERE tenant = $1")
        .bind(tenant.id)
        .fetch_one(&fleet.pool)
        .await
        .unwrap()
}

/// Every cursor of the seller is still a position in the stream, after which the seller's other mail comes.
async fn assert_cursors_of_seller(
    seller: &TenantClient<'_>,
    of_domain: &[Subscriber],
    of_seller: &[Subscriber],
) {
    let mailbox = seller.fleet.mailbox(Some(&seller.tenant.pro), "office@inbox.localhost").await;
    seller.fleet.deliver(0, &mailbox.address, "ours").await;
    for subscriber in of_domain {
        let resumed = seller.long_poll("/v1/me", Some(cursor(subscriber))).await;
        receives(&resumed, 1).await;
        assert_eq!(resumed.received().subjects, ["ours"]);
    }
    for subscriber in of_seller {
        receives_subject(subscriber, "ours").await;
    }
}

/// The buyer's cursors are invalid for the seller; from before the purchase, the buyer reads exactly its own mail.
async fn assert_cursors_of_buyer(
    seller: &TenantClient<'_>,
    buyer: &TenantClient<'_>,
    of_buyer: &Subscriber,
    before: String,
    domain: Uuid,
) {
    let path = format!("/v1/me?since={}", cursor(of_buyer));
    let foreign = seller.fleet.request(1, Method::GET, &path).live(&seller.tenant.live).send().await;
    foreign.assert_v1_error(400, "invalid_request");
    let from_before = buyer.long_poll("/v1/domain/ships.test", Some(before)).await;
    receives_all_of(&from_before, buyer.fleet, domain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn moves_readers_of_an_address_from_shared_inbox_to_mailbox_to_next_mailbox() {
    let redis = RedisServer::new();
    let fleet = Fleet::builder().redis(&redis.url()).start().await;
    let stranger = fleet.another_tenant("lighthouse").await;
    let owner = TenantClient { fleet: &fleet, tenant: &fleet.tenant };
    let stranger = TenantClient { fleet: &fleet, tenant: &stranger };
    let of_stranger = [stranger.long_poll(INBOX, None).await, stranger.stream(Some(ADDRESS), None).await];
    let of_owner = [owner.long_poll(INBOX, None).await, owner.stream(Some(ADDRESS), None).await];
    let owned = [owner.stream(None, None).await, stranger.stream(None, None).await];
    let mail = BackgroundMail::start(&fleet, &[ADDRESS, "noise@inbox.localhost"]);
    for subscriber in of_stranger.iter().chain(&of_owner) {
        receives(subscriber, MAILS).await;
    }

    // A mailbox, which starts empty: only its tenant continues to read the address.
    let first = fleet.mailbox(Some(&fleet.tenant.pro), ADDRESS).await;
    let of_first = socket(&fleet, &first).await;
    for subscriber in &of_stranger {
        rejected(subscriber, 404, "not_found").await;
    }
    for subscriber in of_owner.iter().chain([&owned[0], &of_first]) {
        receives(subscriber, subscriber.received().ids.len() + MAILS).await;
    }
    let shared = stored_set(&fleet, Uuid::nil()).await;
    let mail_of_first = stored_set(&fleet, first.id).await;
    assert_statuses(&ids(&of_stranger), (&owner, 404), (&stranger, 404)).await;

    // Deleted: the address is held.
    let deleted = fleet.request(0, Method::DELETE, "/api/me").bearer(&first.jwt).send().await;
    assert_eq!(deleted.status, 204);
    for subscriber in &of_owner {
        rejected(subscriber, 404, "not_found").await;
    }
    rejected(&of_first, 1008, "invalid_token").await;

    // The next mailbox of the same tenant, whose cursors are still valid.
    let second = fleet.mailbox(Some(&fleet.tenant.pro), ADDRESS).await;
    assert_ne!(first.id, second.id);
    let resumed = [
        owner.long_poll(INBOX, Some(cursor(&of_owner[0]))).await,
        owner.stream(Some(ADDRESS), Some(cursor(&of_owner[1]))).await,
    ];
    let of_second = socket(&fleet, &second).await;
    for subscriber in resumed.iter().chain([&of_second]) {
        receives(subscriber, MAILS).await;
    }
    mail.stop().await;
    for subscriber in &resumed {
        receives_all_of(subscriber, &fleet, second.id).await;
    }
    // Mail from before the socket is in the list of the mailbox; the socket receives what came later.
    for subscriber in [&of_second, &owned[0]] {
        receives_last_of(subscriber, &fleet, second.id).await;
    }
    let mail_of_second = stored_set(&fleet, second.id).await;
    assert!(ids([&of_second]).is_subset(&mail_of_second));
    assert!(ids(&of_stranger).is_subset(&shared));
    assert!(ids(of_owner.iter().chain([&of_first])).is_disjoint(&mail_of_second));
    assert!(owned[1].received().ids.is_empty(), "the stranger owns none of it");
    let owned = ids([&owned[0]]);
    assert!(owned.is_superset(&mail_of_second) && owned.is_disjoint(&shared));
    assert_statuses(&mail_of_first, (&owner, 404), (&stranger, 404)).await;
    assert_statuses(&mail_of_second, (&owner, 200), (&stranger, 404)).await;
    assert_cursor_of_stranger(&stranger, cursor(&of_stranger[0])).await;
}

/// The stranger's cursor is useless for the address, and still a position in the stream for other inboxes.
async fn assert_cursor_of_stranger(stranger: &TenantClient<'_>, cursor: String) {
    let path = format!("{INBOX}?since={cursor}");
    let rejected = stranger.fleet.request(1, Method::GET, &path).live(&stranger.tenant.live).send().await;
    rejected.assert_v1_error(404, "not_found");
    let noise = stranger.long_poll("/v1/inbox/noise@inbox.localhost", Some(cursor)).await;
    receives(&noise, MAILS).await;
    let shared = stored_set(stranger.fleet, Uuid::nil()).await;
    assert!(ids([&noise]).is_subset(&shared));
}

/// Subscribers of an [`App`], whose clock moves.
fn app_long_poll(app: &App, live: &str, path: &str, cursor: Option<String>) -> Subscriber {
    let transport = Transport::LongPoll { path: path.to_owned(), token: live.to_owned() };
    Subscriber::start(app.http(), transport, cursor)
}

async fn app_stream(app: &App, live: &str, address: Option<&str>, cursor: Option<String>) -> Subscriber {
    let transport = Transport::Sse { address: address.map(str::to_owned), token: live.to_owned() };
    let subscriber = Subscriber::start(app.http(), transport, cursor);
    ready(&subscriber).await;
    subscriber
}

#[tokio::test(flavor = "multi_thread")]
async fn moves_readers_of_a_released_address_to_its_new_tenant() {
    let app = App::start().await;
    let next = app.another_tenant("lighthouse").await;
    let [of_all, of_box, of_shared] = [
        app.token(&app.tenant, TokenKind::Live).await,
        app.token(&app.tenant, TokenKind::Live).await,
        app.token(&app.tenant, TokenKind::Live).await,
    ];
    let owned = [app_long_poll(&app, &of_all, "/v1/me", None), app_stream(&app, &of_all, None, None).await];
    let of_next =
        [app_long_poll(&app, &next.live, "/v1/me", None), app_stream(&app, &next.live, None, None).await];
    for subscriber in [&owned[0], &of_next[0]] {
        ready(subscriber).await;
    }

    // A mailbox of the first tenant, then deleted.
    let first = app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    let before =
        [app_long_poll(&app, &of_box, INBOX, None), app_stream(&app, &of_box, Some(ADDRESS), None).await];
    app.deliver(ADDRESS, "ours", "").await;
    for subscriber in before.iter().chain(&owned) {
        receives(subscriber, 1).await;
    }
    app.delete_mailbox(&first).await;
    for subscriber in &before {
        rejected(subscriber, 404, "not_found").await;
    }

    // A shared inbox after the hold, where the former cursors are valid, too.
    app.advance_hours(32 * 24);
    app.worker_pass().await;
    let between = [
        app_long_poll(&app, &of_shared, INBOX, Some(cursor(&before[0]))),
        app_stream(&app, &of_shared, Some(ADDRESS), Some(cursor(&before[1]))).await,
    ];
    app.deliver(ADDRESS, "everybody's", "").await;
    for subscriber in &between {
        receives(subscriber, 1).await;
        assert_eq!(subscriber.received().subjects, ["everybody's"]);
    }

    // A mailbox of the next tenant.
    let second = app.mailbox(Some(&next.pro), ADDRESS).await;
    let socket = Subscriber::start(app.http(), Transport::WebSocket { jwt: second.jwt.clone() }, None);
    ready(&socket).await;
    let expected: Vec<String> = (0..MAILS).map(|number| format!("theirs {number}")).collect();
    for subject in &expected {
        app.deliver(ADDRESS, subject, "").await;
    }
    for subscriber in &between {
        rejected(subscriber, 404, "not_found").await;
    }
    for subscriber in of_next.iter().chain([&socket]) {
        receives(subscriber, MAILS).await;
        assert_eq!(subscriber.received().subjects, expected, "{:?}", subscriber.transport());
    }
    for id in socket.received().ids {
        app.get(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
    }
    assert_receives_only_own_mail(&app, &before, &owned).await;
}

/// The first tenant received nothing but its own mail, and still receives it.
async fn assert_receives_only_own_mail(app: &App, before: &[Subscriber], owned: &[Subscriber]) {
    for subscriber in before.iter().chain(owned) {
        assert_eq!(subscriber.received().subjects, ["ours"], "{:?}", subscriber.transport());
    }
    let mailbox = app.mailbox(Some(&app.tenant.pro), "office@inbox.localhost").await;
    app.deliver(&mailbox.address, "ours again", "").await;
    for subscriber in owned {
        receives(subscriber, 2).await;
        assert_eq!(subscriber.received().subjects, ["ours", "ours again"], "{:?}", subscriber.transport());
    }
}
