//! Maintenance by the worker: partitions, expiry, purges, cleanup.

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx as _;
use tempmail_model::clock::Clock as _;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, SmtpClient};
use tokio::join;

/// Tables that hold messages or raw data, attached or not.
const PARTITIONS: &str =
    "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '^(message|raw)_[0-9]'";
const DETACHED: &str = "SELECT count(*) FROM pg_class
    WHERE relkind = 'r' AND NOT relispartition AND relname ~ '^(message|raw)_[0-9]'";
const MESSAGES: &str = "SELECT count(*) FROM message";
const RAWS: &str = "SELECT count(*) FROM raw";
const BYTES: &str = "SELECT (SELECT coalesce(sum(bytes), 0) FROM usage)::bigint
    + (SELECT coalesce(sum(bytes), 0) FROM message_partition)::bigint";
const PURGES: &str = "SELECT count(*) FROM purge";

#[tokio::test]
async fn creates_partitions_before_mail_needs_them() {
    let app = App::start().await;
    // The start of a partition, so that none begins during the test.
    let width = 300 - app.clock.now().as_second() % 300;
    app.clock.advance(SignedDuration::from_secs(width));
    let now = app.clock.now();
    app.worker_pass().await;
    for minutes in [0, 5, 10, 15] {
        let at = now + SignedDuration::from_mins(minutes);
        let covered: Vec<i16> = sqlx::query_scalar(
            "SELECT class FROM message_partition WHERE starts <= $1 AND ends > $1 ORDER BY class",
        )
        .bind(at.to_sqlx())
        .fetch_all(&app.pool)
        .await
        .expect("partitions can be listed");
        assert!(covered.contains(&1) && covered.contains(&72), "in {minutes} min: {covered:?}");
    }
    let before = app.count(PARTITIONS).await;
    app.worker_pass().await;
    assert_eq!(app.count(PARTITIONS).await, before, "a second pass creates none");
}

#[tokio::test]
async fn deletes_expired_mail_physically() {
    let app = App::start().await;
    app.deliver("short@inbox.localhost", "kept for an hour", "x").await;
    let domain = app.custom_domain(&app.tenant, "kept.test").await;
    app.deliver("long@kept.test", "kept for three days", "x").await;
    assert!(!domain.is_nil());
    assert_eq!(app.count(MESSAGES).await, 2);

    // One partition's width after the hour, wherever in its partition the mail is.
    app.clock.advance(SignedDuration::from_mins(65));
    app.worker_pass().await;
    assert_eq!((app.count(MESSAGES).await, app.count(RAWS).await), (1, 1), "the hour has passed");
    assert_eq!(app.count("SELECT count(*) FROM message WHERE class = 72").await, 1);
    assert_eq!(app.count(DETACHED).await, 0, "its tables are dropped");
    assert_eq!(app.count("SELECT count(*) FROM usage WHERE class = 1").await, 0);
    app.deliver("short@inbox.localhost", "new mail is accepted", "x").await;

    app.advance_hours(75);
    app.worker_pass().await;
    assert_eq!((app.count(MESSAGES).await, app.count(RAWS).await), (0, 0));
    assert_eq!(app.count(BYTES).await, 0);
}

/// A transaction that reads delays expiry; new mail does not wait for it.
#[tokio::test]
async fn accepts_mail_while_a_reader_delays_expiry() {
    let app = App::start().await;
    app.deliver("short@inbox.localhost", "to expire", "x").await;
    app.worker_pass().await;

    // Before the mail expires: the running worker would drop its partition.
    let mut reader = app.pool.begin().await.expect("a transaction begins");
    sqlx::query(MESSAGES).execute(&mut *reader).await.expect("the transaction reads");
    app.clock.advance(SignedDuration::from_mins(65));
    let mail_while_reading = async {
        for _ in 0..20 {
            app.deliver("other@inbox.localhost", "while the worker tries", "x").await;
        }
        assert_eq!(app.count(MESSAGES).await, 21, "nothing is expired yet, nothing new is lost");
        reader.rollback().await.expect("the transaction ends");
    };
    join!(app.worker_pass(), mail_while_reading);
    // The pass may have given up before: then the next one succeeds.
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM message WHERE subject = 'to expire'").await, 0);
    assert_eq!(app.count(MESSAGES).await, 20);
}

#[tokio::test]
async fn purges_a_large_mailbox_in_batches() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "many@inbox.localhost").await;
    app.deliver("neighbour@inbox.localhost", "stays", "x").await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for _ in 0..11 {
        let tags: Vec<String> = (0..100).map(|tag| format!("many+{tag}@inbox.localhost")).collect();
        let recipients: Vec<&str> = tags.iter().map(String::as_str).collect();
        let reply =
            client.transact("ada@client.example", &recipients, b"Subject: one of many\r\n\r\nx\r\n").await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }
    assert_eq!((app.count(MESSAGES).await, app.count(RAWS).await), (1_101, 12));

    app.delete_mailbox(&mailbox).await;
    // Two passes at once, and that of the running worker, do not harm each other.
    join!(app.worker_pass(), app.worker_pass());
    eventually("the purge is complete", || async { (app.count(PURGES).await == 0).then_some(()) }).await;
    assert_eq!((app.count(MESSAGES).await, app.count(RAWS).await), (1, 1));
    let kept = app.count("SELECT stored_bytes::bigint + message_row_bytes() FROM raw").await;
    assert_eq!(app.count("SELECT sum(bytes)::bigint FROM message_partition WHERE class = 1").await, kept);
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM usage WHERE class = 72").await, 0);
}

mod chaos {
    use super::*;

    #[tokio::test]
    #[ignore = "chaos: a pass of the worker tries for some 20 seconds"]
    async fn leaves_a_partition_in_use_to_the_next_pass() {
        let app = App::start().await;
        app.deliver("short@inbox.localhost", "to expire", "x").await;
        app.worker_pass().await;
        let mut reader = app.pool.begin().await.expect("a transaction begins");
        sqlx::query(MESSAGES).execute(&mut *reader).await.expect("the transaction reads");
        app.clock.advance(SignedDuration::from_mins(65));
        app.worker_pass().await;
        assert_eq!(app.count(MESSAGES).await, 1, "the pass gave up");
        reader.rollback().await.expect("the transaction ends");
        app.worker_pass().await;
        assert_eq!(app.count(MESSAGES).await, 0);
    }
}
