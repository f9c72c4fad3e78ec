//! An address gets another owner: readers of the former owner receive none of the mail of the next,
//! on any surface.

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::{App, Feed, Follower, Tenant, TestDns};

/// Clients of a tenant that follow, each with a token of its own.
struct Readers(Vec<(Feed, Follower)>);

impl Readers {
    async fn start(app: &App, tenant: &Tenant, ways: impl IntoIterator<Item = Feed>) -> Self {
        let mut readers = Vec::new();
        for way in ways {
            let token = app.token(tenant, TokenKind::Live).await;
            let follower = Follower::start(app.http(), &token, way.clone());
            follower.ready().await;
            readers.push((way, follower));
        }
        Self(readers)
    }

    /// Waits until each has met so many.
    async fn met(&self, count: usize) {
        for (_, reader) in &self.0 {
            reader.wait_for(count).await;
        }
    }

    /// Waits until each is refused, and asserts that nothing that they met is of another subject.
    async fn are_refused_and_met_only(self, subject: &str) {
        for (way, reader) in self.0 {
            assert_eq!(reader.refused().await, "not_found", "{way:?}");
            only(&way, &reader, &[subject]);
        }
    }
}

/// Asserts that all that was met is of these subjects.
fn only(way: &Feed, reader: &Follower, subjects: &[&str]) {
    let met: Vec<String> = reader.receipts().into_iter().map(|receipt| receipt.subject).collect();
    assert!(met.iter().all(|subject| subjects.contains(&subject.as_str())), "{way:?} met {met:?}");
    assert_eq!(reader.duplicates(), 0, "{way:?}");
}

fn of_addresses(addresses: &[&str]) -> Vec<Feed> {
    let ways = |address: &&str| [Feed::Inbox((*address).to_owned()), Feed::SseAddress((*address).to_owned())];
    addresses.iter().flat_map(ways).collect()
}

async fn deliver_to_all(app: &App, addresses: &[&str], subject: &str) {
    for address in addresses {
        app.deliver(address, subject, "").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_mail_only_to_its_owner_when_an_address_changes_owners() {
    const ADDRESSES: &[&str] = &["relay@inbox.localhost", "relay+tag@inbox.localhost"];
    let app = App::start().await;
    let (second, third) = (app.another_tenant("second").await, app.another_tenant("third").await);
    let of_all = Readers::start(&app, &app.tenant, of_addresses(ADDRESSES)).await;
    deliver_to_all(&app, ADDRESSES, "of all").await;
    of_all.met(1).await;

    let mailbox = app.mailbox(Some(&second.pro), ADDRESSES[0]).await;
    deliver_to_all(&app, ADDRESSES, "of the second").await;
    of_all.are_refused_and_met_only("of all").await;
    let of_second = Readers::start(&app, &second, of_addresses(ADDRESSES)).await;
    let owned = Readers::start(&app, &second, [Feed::Me, Feed::SseUser]).await;
    deliver_to_all(&app, ADDRESSES, "of the second").await;
    of_second.met(1).await;
    owned.met(2).await;

    assert_eq!(app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await.status, 204);
    // The address is held for 31 days, and is nobody else's until then.
    app.clock.advance(SignedDuration::from_hours(32 * 24));
    app.worker_pass().await;
    app.mailbox(Some(&third.pro), ADDRESSES[0]).await;
    deliver_to_all(&app, ADDRESSES, "of the third").await;
    of_second.are_refused_and_met_only("of the second").await;
    app.mailbox(Some(&second.pro), "own@inbox.localhost").await;
    app.deliver("own@inbox.localhost", "own", "").await;
    owned.met(3).await;
    for (way, reader) in &owned.0 {
        only(way, reader, &["of the second", "own"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_mail_only_to_its_owner_when_a_domain_changes_tenants() {
    const ADDRESSES: &[&str] = &["any@ships.test", "box@ships.test", "box+tag@ships.test"];
    let dns = TestDns::start().await;
    let _server = dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).start().await;
    let buyer = app.another_tenant("buyer").await;
    let sold = app.domain(&app.tenant, "ships.test").await;
    dns.publish(&[&sold]).await;
    assert_eq!(app.check_domain_once_allowed(&app.tenant, &sold.id).await["verify_status"], "verified");
    app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    let mut ways = of_addresses(ADDRESSES);
    ways.push(Feed::Domain("ships.test".to_owned()));
    let of_seller = Readers::start(&app, &app.tenant, ways).await;
    let owned = Readers::start(&app, &app.tenant, [Feed::Me, Feed::SseUser]).await;
    deliver_to_all(&app, ADDRESSES, "of the seller").await;
    of_seller.met(1).await;
    owned.met(ADDRESSES.len()).await;

    let bought = app.domain(&buyer, "ships.test").await;
    dns.publish(&[&bought]).await;
    assert_eq!(app.check_domain_once_allowed(&buyer, &bought.id).await["verify_status"], "verified");
    app.mailbox(Some(&buyer.pro), "box@ships.test").await;
    deliver_to_all(&app, ADDRESSES, "of the buyer").await;
    let of_buyer = app.emails_as(&buyer.live, "box@ships.test").await;
    assert!(of_buyer.iter().all(|email| email["subject"] == "of the buyer"), "{of_buyer:?}");
    of_seller.are_refused_and_met_only("of the seller").await;
    app.mailbox(Some(&app.tenant.pro), "own@inbox.localhost").await;
    app.deliver("own@inbox.localhost", "own", "").await;
    owned.met(ADDRESSES.len() + 1).await;
    for (way, reader) in &owned.0 {
        only(way, reader, &["of the seller", "own"]);
    }
}
