//! One mail to recipients with different owners: no copy reveals another, and each has its own retention.

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::app::Mailbox;
use tempmail_tests::rows::set_retention;
use tempmail_tests::{App, Feed, Follower, SmtpClient, Tenant, TestDns, smtp};

const BOX: &str = "quarterdeck@inbox.localhost";

const DOMAIN: &str = "forecastle@ships.example";

const SHARED: &str = "gangway@inbox.localhost";

const MAIL: &[u8] =
    b"From: a@client.example\r\nTo: undisclosed-recipients:;\r\nSubject: to all three\r\n\r\nthe same body\r\n";

/// A free mailbox (1 h), a custom domain of a tenant with 6 h, and a shared inbox (1 h).
async fn sent() -> (App, Mailbox) {
    let app = App::start().await;
    set_retention(&app.pool, app.tenant.id, 6).await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let mailbox = app.mailbox(None, BOX).await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let reply = client.transact("a@client.example", &[BOX, DOMAIN, SHARED], MAIL).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    (app, mailbox)
}

async fn rows(app: &App) -> (i64, i64) {
    (app.count("SELECT count(*) FROM message").await, app.count("SELECT count(*) FROM raw").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn names_no_other_recipient_in_a_copy() {
    let (app, mailbox) = sent().await;
    let id = |email: &serde_json::Value| email["id"].as_str().unwrap().to_owned();
    let in_box = id(&app.messages(&mailbox).await[0]);
    let in_domain = id(&app.emails(DOMAIN).await[0]);
    let in_shared = id(&app.emails(SHARED).await[0]);
    assert!(in_box != in_domain && in_domain != in_shared && in_box != in_shared);

    let path = format!("/api/messages/{in_box}");
    let mut copies = vec![
        app.get_mailbox(&mailbox, &path).await.text(),
        app.get_mailbox(&mailbox, &format!("{path}/raw")).await.text(),
    ];
    for id in [&in_domain, &in_shared] {
        copies.push(app.get(&format!("/v1/email/{id}")).await.text());
        copies.push(app.get(&format!("/v1/email/{id}/raw")).await.text());
    }
    for (i, copy) in copies.iter().enumerate() {
        assert!(copy.contains("the same body"));
        let own = ["quarterdeck", "forecastle", "gangway"][i / 2];
        for name in ["quarterdeck", "forecastle", "gangway"] {
            let has_name = copy.contains(name);
            // The JSON names its own address; the raw message of several recipients nobody.
            assert_eq!(has_name, name == own && i % 2 == 0, "{name} in copy {i}: {copy}");
        }
        // No id that two copies have in common: none shows that they are of one mail.
        for (j, other) in copies.iter().enumerate().filter(|(j, _)| j / 2 != i / 2 && j % 2 == 1) {
            if i % 2 == 1 {
                assert_eq!(trace(copy).len(), trace(other).len(), "{i} {j}");
            }
        }
    }
    // The copy of one tenant is nothing to another.
    let other = app.another_tenant("lighthouse").await;
    app.get_as(&other.live, &format!("/v1/email/{in_domain}")).await.assert_v1_error(404, "not_found");
    app.get_as(&other.live, &format!("/v1/email/{in_box}")).await.assert_v1_error(404, "not_found");
}

fn trace(raw: &str) -> &str {
    raw.split_once("From: a@client.example").map_or("", |(trace, _)| trace)
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_each_copy_when_its_own_retention_ends() {
    let (app, mailbox) = sent().await;
    assert_eq!(rows(&app).await, (3, 2), "raw data once a mail and class");

    app.clock.advance(SignedDuration::from_mins(61));
    assert!(app.messages(&mailbox).await.is_empty());
    assert_eq!(app.emails(DOMAIN).await.len(), 1);
    // One partition's width (5 min) and 5 min more, and nothing of it is on disk.
    app.clock.advance(SignedDuration::from_mins(10));
    app.worker_pass().await;
    assert_eq!(rows(&app).await, (1, 1));
    assert_eq!(tables_with_mail(&app).await, 2, "one partition of each table has rows");
    assert_eq!(app.emails(DOMAIN).await[0]["subject"], "to all three");

    app.advance_hours(6);
    app.worker_pass().await;
    assert_eq!(rows(&app).await, (0, 0));
    assert_eq!(tables_with_mail(&app).await, 0);
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM usage").await, 0);
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM message_partition").await, 0);
}

/// Tables of messages and raw data, attached or not, that have anything in them.
async fn tables_with_mail(app: &App) -> usize {
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT c.oid::regclass::text FROM pg_class c
         WHERE c.relkind = 'r' AND c.relname ~ '^(message|raw)_[0-9]'",
    )
    .fetch_all(&app.pool)
    .await
    .unwrap();
    let mut filled = 0;
    for table in tables {
        let statement = sqlx::AssertSqlSafe(format!("SELECT EXISTS (SELECT FROM {table})"));
        let has_rows: bool = sqlx::query_scalar(statement).fetch_one(&app.pool).await.unwrap();
        filled += usize::from(has_rows);
    }
    filled
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_other_copies_when_one_is_deleted() {
    let (app, mailbox) = sent().await;
    let shared = app.emails(SHARED).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(app.delete(&format!("/v1/email/{shared}")).await.status, 204);
    assert_eq!(rows(&app).await, (2, 2), "the mailbox still needs the raw data of the class");
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/messages/{id}");
    assert!(app.get_mailbox(&mailbox, &format!("{path}/raw")).await.text().contains("the same body"));

    let deleted = app.request(Method::DELETE, &path).bearer(&mailbox.jwt).send().await;
    assert_eq!(deleted.status, 204);
    assert_eq!(rows(&app).await, (1, 1), "the last of its class takes the raw data along");
    let domain = app.emails(DOMAIN).await[0]["id"].as_str().unwrap().to_owned();
    assert!(app.get(&format!("/v1/email/{domain}/raw")).await.text().contains("the same body"));
    assert_eq!(app.delete(&format!("/v1/email/{domain}")).await.status, 204);
    assert_eq!(rows(&app).await, (0, 0));
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM usage").await, 0);
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM message_partition").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_a_changed_retention_to_new_mail_only() {
    let (app, _mailbox) = sent().await;
    set_retention(&app.pool, app.tenant.id, 72).await;
    app.deliver(DOMAIN, "longer", "").await;
    app.advance_hours(7);
    app.worker_pass().await;
    let emails = app.emails(DOMAIN).await;
    assert_eq!((emails.len(), &emails[0]["subject"]), (1, &"longer".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn delivers_mail_to_a_new_mailbox_from_its_201_on() {
    for round in 0..5 {
        one_mailbox(round).await;
    }
}

async fn one_mailbox(round: usize) {
    let app = App::builder().ingests(2).start().await;
    let address = "flow@inbox.localhost";
    let (created, enough) = (AtomicBool::new(false), AtomicBool::new(false));
    // Follows the shared inbox until it is the mailbox's: what it ever showed.
    let follower = async {
        let token = app.token(&app.tenant, TokenKind::Live).await;
        let other = app.another_tenant("lighthouse").await;
        let mut seen = Vec::new();
        while !enough.load(Ordering::Acquire) {
            let request = app.request(Method::GET, &format!("/v1/inbox/{address}?limit=50"));
            let answer = request.live(&other.live).send_until_available().await;
            match answer.status {
                200 => seen.extend(answer.json()["emails"].as_array().unwrap().clone()),
                404 => break,
                status => panic!("{status}: {}", answer.text()),
            }
        }
        drop(token);
        seen
    };
    let senders = (0..4).map(|sender| {
        let (app, created, enough) = (&app, &created, &enough);
        async move {
            let server = app.smtp_all()[sender % 2];
            let mut client = SmtpClient::connect_with_ehlo(server).await;
            let mut after = Vec::new();
            for i in 0..200 {
                // Read before the mail transaction begins.
                let exists = created.load(Ordering::Acquire);
                let subject = format!("{sender}.{i}");
                let message = smtp::message("a@client.example", &subject, "");
                let reply = client.transact("a@client.example", &[address], &message).await;
                assert_eq!(reply.code, 250, "{reply:?}");
                if exists {
                    after.push(subject);
                }
                if after.len() >= 5 {
                    break;
                }
            }
            if sender == 0 {
                enough.store(true, Ordering::Release);
            }
            after
        }
    });
    let creation = async {
        tempmail_tests::wait::eventually("mail flows", || async {
            (app.count("SELECT seq FROM stream").await > 10).then_some(())
        })
        .await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), address).await;
        created.store(true, Ordering::Release);
        mailbox
    };
    let (seen, sent, mailbox) = tokio::join!(follower, futures_util::future::join_all(senders), creation);

    let mut inside = Vec::new();
    for page in 1.. {
        let body = app.get_mailbox(&mailbox, &format!("/api/messages?page={page}")).await.expect(200);
        let messages = body["messages"].as_array().unwrap().clone();
        let last = messages.len() < 30;
        inside.extend(messages);
        if last {
            break;
        }
    }
    let subjects: Vec<&str> = inside.iter().map(|message| message["subject"].as_str().unwrap()).collect();
    for subject in sent.iter().flatten() {
        let times = subjects.iter().filter(|other| *other == subject).count();
        assert_eq!(times, 1, "round {round}: {subject} was sent after the 201");
    }
    for email in &seen {
        assert!(
            !inside
                .iter()
                .any(|message| message["id"] == email["id"] || message["subject"] == email["subject"]),
            "round {round}: {email} is in two views"
        );
    }
}

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

    app.delete_mailbox(&mailbox).await;
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
