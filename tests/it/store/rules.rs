//! Rules that exist in SQL and in Rust give the same results.

use std::collections::BTreeMap;

use tempmail_model::address::{RecipientAddress, Reservation, ReservedLocalParts};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_store::{AcceptOutcome, DeliveryLimits, NewMessage, RawData};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, SmtpClient};

use super::{mail, store};

#[tokio::test]
async fn has_the_retention_classes_of_the_program_in_the_schema() {
    let app = App::start().await;
    let mut accepted = Vec::new();
    for hours in -1..1_000_i16 {
        let cast = sqlx::query("SELECT $1::smallint::retention_class").bind(hours).execute(&app.pool).await;
        if cast.is_ok() {
            accepted.push(hours);
        }
    }
    assert_eq!(accepted, RetentionClass::ALL.map(RetentionClass::hours));
    for class in RetentionClass::ALL {
        let width: f64 = sqlx::query_scalar("SELECT extract(epoch FROM partition_width($1))::float8")
            .bind(class.hours())
            .fetch_one(&app.pool)
            .await
            .unwrap();
        assert_eq!(width, class.partition_width().as_secs_f64(), "{class:?}");
    }
}

/// Everything that an address can be, asked at RCPT (`judge` in Rust, over `address_owner`) and at the end of
/// data (`accept_mail` alone). A mail that RCPT accepts is stored, and one that it refuses is not.
#[tokio::test(flavor = "multi_thread")]
async fn decides_every_kind_of_address_the_same_at_rcpt_and_final_delivery() {
    let app = App::start().await;
    let other = app.another_tenant("suspended").await;
    app.system_domain("closed.example", false).await;
    app.custom_domain(&app.tenant, "custom.example").await;
    app.custom_domain(&other, "silent.example").await;
    for address in ["live@inbox.localhost", "live@closed.example", "live@custom.example"] {
        app.mailbox(Some(&app.tenant.pro), address).await;
    }
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    let held = app.mailbox(None, "held@inbox.localhost").await;
    let gone = app.request(reqwest::Method::DELETE, "/api/me").bearer(&held.jwt).send().await;
    assert_eq!(gone.status, 204);
    app.tempmail("tenant suspend suspended").await.success();

    let reserved = ReservedLocalParts::new(ReservedLocalParts::DEFAULT);
    let mut answers = BTreeMap::new();
    for domain in ["inbox.localhost", "closed.example", "custom.example", "silent.example", "unknown.example"]
    {
        for local_part in
            ["live", "live+tag", "held", "held+tag", "theirs", "any", "admin", "postmaster", "\u{fc}"]
        {
            let address = format!("{local_part}@{domain}");
            let stored = accept(&app, &address, &reserved).await;
            // A yes may be remembered for 5 s.
            eventually("RCPT says what final delivery does", || async {
                let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
                client.expect_positive("MAIL FROM:<a@client.example> SMTPUTF8").await;
                let rcpt = client.command(&format!("RCPT TO:<{address}>")).await;
                (rcpt.is_positive() == stored).then_some(())
            })
            .await;
            *answers.entry(stored).or_insert(0) += 1;
        }
    }
    assert!(answers[&true] >= 10 && answers[&false] >= 10, "{answers:?}");
}

/// Whether `accept_mail` stores a mail to the address.
async fn accept(app: &App, address: &str, reserved: &ReservedLocalParts) -> bool {
    let now = app.clock.now();
    let address = RecipientAddress::parse(address).unwrap();
    let kind: Reservation = reserved.reservation_of(address.base_local_part());
    let recipient = NewMessage { id: new_id(now), address, reserved: kind, size: 1 };
    let mail = mail(RawData::Inline(vec![7]), recipient, now);
    let rules =
        DeliveryLimits { free_class: RetentionClass::FREE, inbox_bytes: 1 << 20, tenant_bytes: i64::MAX };
    let mut writer = store(app).mail_writer().await.unwrap();
    let outcomes = writer.accept_mail(rules, now, &[mail]).await.unwrap();
    match &outcomes[..] {
        [AcceptOutcome::Stored(_)] => true,
        [AcceptOutcome::RecipientGone] => false,
        other => panic!("{other:?}"),
    }
}
