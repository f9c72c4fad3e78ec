//! The database user of the roles: the rights that docs/operations.md gives it are enough, and DDL is not among
//! them.

use std::path::Path;

use jiff::SignedDuration;
use sqlx::{AssertSqlSafe, Executor as _};
use tempmail_model::address::{RecipientAddress, Reservation};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_store::{AcceptOutcome, DeliveryLimits, NewMessage, PartitionRange, RawData, Store};
use tempmail_tests::App;
use tempmail_tests::wait::eventually;

use super::mail;

/// The statements of the document, with a name of the test's own: roles are of the whole server.
fn documented_rights(role: &str) -> String {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md");
    let text = std::fs::read_to_string(document).unwrap();
    let (_, block) = text.split_once("```sql\nCREATE ROLE tempmail_role").expect("the document has them");
    let (block, _) = block.split_once("```").unwrap();
    format!("CREATE ROLE tempmail_role{block}").replace("tempmail_role", role)
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_the_roles_with_the_documented_rights() {
    let app = App::start().await;
    let role = format!("role_{}", uuid::Uuid::new_v4().simple());
    app.pool.execute(AssertSqlSafe(documented_rights(&role))).await.unwrap();
    let url = app.database().url();
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, place) = rest.split_once('@').unwrap();
    let store =
        Store::connect(&format!("{scheme}://{role}:choose%20one@{place}"), 2, "tempmail tests").unwrap();
    store.check_schema().await.unwrap();

    let now = app.clock.now();
    let class = RetentionClass::FREE;
    for at in [now, now + SignedDuration::from_hours(2)] {
        store.ensure_message_partition(class, at).await.unwrap();
    }
    let recipient = NewMessage {
        id: new_id(now),
        address: RecipientAddress::parse("any@inbox.localhost").unwrap(),
        reserved: Reservation::None,
        size: 1,
    };
    let mail = mail(RawData::Inline(vec![7]), recipient, now);
    let rules = DeliveryLimits { free_class: class, inbox_bytes: 1 << 20 };
    let stored = store.mail_writer().await.unwrap().accept_mail(rules, now, &[mail]).await.unwrap();
    let [AcceptOutcome::Stored(arrivals)] = &stored[..] else { panic!("{stored:?}") };
    let rows = store.list_messages_by_id(class, &[arrivals[0].id]).await.unwrap();
    assert_eq!(store.raw_chunk(&rows[0], 0, 10).await.unwrap(), Some(vec![7]));
    assert!(store.delete_message(&rows[0]).await.unwrap());
    let ahead = now + SignedDuration::from_hours(2);
    let starts = ahead - SignedDuration::from_secs(ahead.as_second() % 300);
    let starts = starts - SignedDuration::from_nanos(starts.subsec_nanosecond().into());
    // Not while another transaction holds a lock.
    eventually("the partition is detached", || async {
        store.detach_message_partition(PartitionRange { class, starts }).await.unwrap().then_some(())
    })
    .await;
    assert_eq!(store.drop_detached_partitions().await.unwrap(), 2);

    for statement in ["DROP TABLE purge", "CREATE TABLE mine (x integer)", "DELETE FROM schema_object"] {
        let refused = store.pool().execute(statement).await.unwrap_err();
        let code = refused.as_database_error().unwrap().code();
        assert_eq!(code.as_deref(), Some("42501"), "{statement}: {refused}");
    }
    store.pool().close().await;
    app.pool.execute(AssertSqlSafe(format!("DROP OWNED BY {role}; DROP ROLE {role}"))).await.unwrap();
}
