//! What one tenant may store besides its own limits leaves room to the others.

use tempmail_model::address::{RecipientAddress, Reservation};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_store::{AcceptOutcome, DeliveryLimits, NewMessage, RawData};
use tempmail_tests::App;

use super::{mail, store};

/// Delivers a mail of 4,000 bytes of data while a tenant may store as much.
async fn accept(app: &App, address: &str, tenant_bytes: i64) -> AcceptOutcome {
    let now = app.clock.now();
    let recipient = NewMessage {
        id: new_id(now),
        address: RecipientAddress::parse(address).unwrap(),
        reserved: Reservation::None,
        size: 4_000,
    };
    let mail = mail(RawData::Inline(vec![7; 4_000]), recipient, now);
    let limits = DeliveryLimits { free_class: RetentionClass::FREE, inbox_bytes: 1 << 20, tenant_bytes };
    let mut writer = store(app).mail_writer().await.unwrap();
    writer.accept_mail(limits, now, &[mail]).await.unwrap().remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn defers_the_tenant_that_stores_more_than_its_share_only() {
    let app = App::start().await;
    let other = app.another_tenant("other").await;
    app.mailbox(Some(&app.tenant.pro), "most@inbox.localhost").await;
    app.mailbox(Some(&other.pro), "least@inbox.localhost").await;
    let stored = |outcome: &AcceptOutcome| matches!(outcome, AcceptOutcome::Stored(_));
    for _ in 0..3 {
        assert!(stored(&accept(&app, "most@inbox.localhost", 16_000).await));
    }
    assert_eq!(accept(&app, "most@inbox.localhost", 16_000).await, AcceptOutcome::StoreFull);
    for _ in 0..3 {
        assert!(stored(&accept(&app, "least@inbox.localhost", 16_000).await));
    }
    assert!(stored(&accept(&app, "shared@inbox.localhost", 0).await), "it has no tenant");
    assert!(stored(&accept(&app, "most@inbox.localhost", 32_000).await), "room was made");
}
