//! Mail whose data is stored ahead of its messages, a part at a time.

use rand::Rng as _;
use reqwest::Method;
use tempmail_model::address::{RecipientAddress, Reservation};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_store::{AcceptOutcome, DeliveryLimits, NewMessage, RAW_PART_BYTES, RawData};
use tempmail_tests::rows::set_retention;
use tempmail_tests::{App, SmtpClient, send_mail, smtp};

use super::{mail, store};

const RAW_PARTS: &str = "SELECT count(*) FROM raw";

/// A message of about so many octets that no compression makes small.
fn large(octets: usize) -> Vec<u8> {
    let mut random = vec![0; octets / 2];
    rand::rng().fill_bytes(&mut random);
    let mut body = String::with_capacity(octets + octets / 38);
    for line in random.chunks(38) {
        body.extend(line.iter().map(|octet| format!("{octet:02x}")));
        body.push_str("\r\n");
    }
    smtp::message("a@client.example", "large", &body)
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_same_octets_to_each_recipient() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let sent = large(4 << 20);
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let recipients = ["box@inbox.localhost", "shared@inbox.localhost"];
    assert_eq!(client.transact("a@client.example", &recipients, &sent).await.code, 250);
    let parts = app.count("SELECT count(*) FROM raw WHERE class = 72").await;
    assert!(parts > 4, "{parts} parts");
    assert_eq!(app.count(RAW_PARTS).await, 2 * parts, "once in each class");
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let in_box = app.get_mailbox(&mailbox, &format!("/api/messages/{id}/raw")).await;
    let id = app.emails("shared@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();
    let shared = app.get(&format!("/v1/email/{id}/raw")).await;
    for read in [in_box, shared] {
        assert!(read.body.ends_with(&sent), "{} octets of {}", read.body.len(), sent.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_all_parts_with_the_message() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "box@inbox.localhost").await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let recipients = ["box@inbox.localhost", "box+tag@inbox.localhost"];
    assert_eq!(client.transact("a@client.example", &recipients, &large(2 << 20)).await.code, 250);
    let parts = app.count(RAW_PARTS).await;
    for (left, message) in [(parts, 0), (0, 1)].into_iter().zip(app.messages(&mailbox).await) {
        let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
        let deleted = app.request(Method::DELETE, &path).bearer(&mailbox.jwt).send().await;
        assert_eq!(deleted.status, 204);
        assert_eq!(app.count(RAW_PARTS).await, left.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_nothing_of_a_refused_mail() {
    let app = App::builder().config(|config| config.limits.mailbox_bytes = 1 << 20).start().await;
    app.mailbox(None, "small@inbox.localhost").await;
    let reply = send_mail(app.smtp(), "a@client.example", "small@inbox.localhost", &large(2 << 20)).await;
    assert_eq!(reply.status(), "452 4.2.2");
    assert_eq!(app.count(RAW_PARTS).await, 0);
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);
}

/// The retention of the owner changed after the data was stored: neither a message without data nor one that is
/// kept for another time, but an error that defers the mail.
#[tokio::test(flavor = "multi_thread")]
async fn defers_a_mail_whose_retention_changed_meanwhile() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let now = app.clock.now();
    let recipient = NewMessage {
        id: new_id(now),
        address: RecipientAddress::parse("box@inbox.localhost").unwrap(),
        reserved: Reservation::None,
        size: 1_000,
    };
    let rules =
        DeliveryLimits { free_class: RetentionClass::FREE, inbox_bytes: 1 << 20, tenant_bytes: i64::MAX };
    let ahead = store(&app).preflight_delivery(rules, std::slice::from_ref(&recipient), now).await.unwrap();
    assert_eq!(ahead.classes, [RetentionClass::PRO]);
    assert!(!ahead.is_over_quota() && !ahead.store_full);
    let part = usize::try_from(RAW_PART_BYTES).unwrap();
    let mail = mail(RawData::StoredSeparately { bytes: part + 1 }, recipient, now);
    for (number, more) in [(0, true), (1, false)] {
        let stored = store(&app).store_raw_part(mail.id, &ahead.classes, 0, &vec![7; part + 1], number).await;
        assert_eq!(stored.unwrap(), more);
    }
    assert_eq!(app.count(RAW_PARTS).await, 2);

    set_retention(&app.pool, app.tenant.id, 24).await;
    store(&app).ensure_message_partition(24_i16.try_into().unwrap(), now).await.unwrap();
    let mut writer = store(&app).mail_writer().await.unwrap();
    let refused = writer.accept_mail(rules, now, std::slice::from_ref(&mail)).await.unwrap_err();
    assert!(refused.is_retention_changed() && !refused.is_data_refused(), "{refused}");
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);

    set_retention(&app.pool, app.tenant.id, 72).await;
    let stored = writer.accept_mail(rules, now, std::slice::from_ref(&mail)).await.unwrap();
    assert!(matches!(stored[..], [AcceptOutcome::Stored(_)]), "{stored:?}");
    store(&app).discard_raw(mail.id, &ahead.classes).await.unwrap();
    assert_eq!(app.count(RAW_PARTS).await, 2, "what is accepted is not discarded");
}
