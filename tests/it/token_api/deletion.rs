//! `DELETE /v1/email/<id>` and `DELETE /v1/inbox/<address>`

use futures_util::future::join_all;
use tempmail_tests::App;
use tempmail_tests::wait::eventually;

const ADDRESS: &str = "ship@inbox.localhost";

#[tokio::test(flavor = "multi_thread")]
async fn deletes_one_email_and_keeps_the_others() {
    let app = App::start().await;
    app.deliver(ADDRESS, "one", "").await;
    app.deliver(ADDRESS, "two", "").await;
    let emails = app.emails(ADDRESS).await;
    let path = format!("/v1/email/{}", emails[0]["id"].as_str().unwrap());
    assert_eq!(app.delete(&path).await.status, 204);
    app.delete(&path).await.assert_v1_error(404, "not_found");
    app.get(&path).await.assert_v1_error(404, "not_found");
    app.get(&format!("{path}/raw")).await.assert_v1_error(404, "not_found");
    let left = app.emails(ADDRESS).await;
    assert_eq!((left.len(), &left[0]["subject"]), (1, &"one".into()));
    app.advance_hours(2);
    app.get(&path).await.assert_v1_error(410, "email_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn empties_only_this_inbox_at_once() {
    let app = App::start().await;
    for i in 0..5 {
        app.deliver("ship@inbox.localhost", &format!("{i}"), "").await;
    }
    app.deliver("boat@inbox.localhost", "stays", "").await;
    let id = app.emails("ship@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();

    assert_eq!(app.delete("/v1/inbox/ship@inbox.localhost").await.status, 204);
    app.get(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
    app.get(&format!("/v1/email/{id}/raw")).await.assert_v1_error(404, "not_found");
    app.delete(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
    app.assert_inbox_is_empty("ship@inbox.localhost").await;
    assert_eq!(app.emails("boat@inbox.localhost").await[0]["subject"], "stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_an_empty_inbox() {
    let app = App::start().await;
    assert_eq!(app.delete("/v1/inbox/never@inbox.localhost").await.status, 204);
    assert_eq!(app.delete("/v1/inbox/never@inbox.localhost").await.status, 204);
    app.delete("/v1/inbox/a@elsewhere.example").await.assert_v1_error(404, "not_found");
    app.delete("/v1/inbox/malformed").await.assert_v1_error(400, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_mail_that_arrives_after_the_deletion() {
    let app = App::start().await;
    app.deliver("ship@inbox.localhost", "old", "").await;
    assert_eq!(app.delete("/v1/inbox/ship@inbox.localhost").await.status, 204);
    app.deliver("ship@inbox.localhost", "new", "").await;
    app.worker_pass().await;
    let emails = app.emails("ship@inbox.localhost").await;
    assert_eq!((emails.len(), &emails[0]["subject"]), (1, &"new".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_removes_rows_and_raw_data() {
    let app = App::start().await;
    for i in 0..3 {
        app.deliver("ship@inbox.localhost", &format!("{i}"), "").await;
    }
    assert_eq!(app.delete("/v1/inbox/ship@inbox.localhost").await.status, 204);
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 0);
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM usage").await, 0);
    assert_eq!(app.count("SELECT coalesce(sum(bytes), 0)::bigint FROM message_partition").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM purge").await, 0, "what was carried out is forgotten");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_only_the_mail_of_a_tag() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    app.deliver("box@inbox.localhost", "plain", "").await;
    app.deliver("box+tag@inbox.localhost", "tagged", "").await;
    assert_eq!(app.delete("/v1/inbox/box%2Btag@inbox.localhost").await.status, 204);
    for carried_out in [false, true] {
        if carried_out {
            app.worker_pass().await;
        }
        let messages = app.messages(&mailbox).await;
        assert_eq!((messages.len(), &messages[0]["subject"]), (1, &"plain".into()));
    }
    assert_eq!(app.delete("/v1/inbox/box@inbox.localhost").await.status, 204);
    assert!(app.messages(&mailbox).await.is_empty());
    assert_eq!(app.get_mailbox(&mailbox, "/api/me").await.expect(200)["used"], 0);
    app.worker_pass().await;
    assert_eq!(app.get_mailbox(&mailbox, "/api/me").await.expect(200)["used"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_that_wait_leave_connections_to_other_mailboxes() {
    // Two more than the deletions of a tenant have at once.
    let app = App::builder().config(|config| config.postgres.pool = 4).start().await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let other = app.mailbox(None, "other@inbox.localhost").await;
    app.deliver("box@inbox.localhost", "one", "").await;
    let mut lock = app.pool.begin().await.unwrap();
    sqlx::query("SELECT lock_inbox(m.inbox) FROM message m").execute(&mut *lock).await.unwrap();

    let deletions = join_all((0..6).map(|_| app.delete("/v1/inbox/box@inbox.localhost")));
    let beside = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%clear_inbox%'";
        eventually("deletions wait for the lock", || async { (app.count(waiting).await >= 2).then_some(()) })
            .await;
        for _ in 0..20 {
            app.get_mailbox(&other, "/api/me").await.expect(200);
        }
        assert_eq!(app.count(waiting).await, 2);
        lock.rollback().await.unwrap();
    };
    let (answers, ()) = tokio::join!(deletions, beside);
    // The others have their turn after these, or on a slow machine give up after 8 s.
    assert!(answers.iter().filter(|answer| answer.status == 204).count() >= 2);
    app.assert_inbox_is_empty("box@inbox.localhost").await;
}
