//! `DELETE /v1/inbox/<address>`

use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_is_empty_at_once_and_others_are_untouched() {
    let app = App::start().await;
    for i in 0..5 {
        app.deliver("ship@inbox.localhost", &format!("{i}"), "").await;
    }
    app.deliver("boat@inbox.localhost", "stays", "").await;
    let id = app.emails("ship@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();

    assert_eq!(app.delete("/v1/inbox/ship@inbox.localhost").await.status, 204);
    app.get(&format!("/v1/email/{id}")).await.is_v1_error(404, "not_found");
    app.get(&format!("/v1/email/{id}/raw")).await.is_v1_error(404, "not_found");
    app.delete(&format!("/v1/email/{id}")).await.is_v1_error(404, "not_found");
    app.assert_inbox_is_empty("ship@inbox.localhost").await;
    assert_eq!(app.emails("boat@inbox.localhost").await[0]["subject"], "stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_inbox_is_deleted_too() {
    let app = App::start().await;
    assert_eq!(app.delete("/v1/inbox/never@inbox.localhost").await.status, 204);
    assert_eq!(app.delete("/v1/inbox/never@inbox.localhost").await.status, 204);
    app.delete("/v1/inbox/a@elsewhere.example").await.is_v1_error(404, "not_found");
    app.delete("/v1/inbox/malformed").await.is_v1_error(400, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_after_the_deletion_is_kept() {
    let app = App::start().await;
    app.deliver("ship@inbox.localhost", "old", "").await;
    assert_eq!(app.delete("/v1/inbox/ship@inbox.localhost").await.status, 204);
    app.deliver("ship@inbox.localhost", "new", "").await;
    app.worker_pass().await;
    let emails = app.emails("ship@inbox.localhost").await;
    assert_eq!((emails.len(), &emails[0]["subject"]), (1, &"new".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_removes_the_rows_and_the_raw_data() {
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
async fn deleting_a_tag_leaves_the_rest_of_the_mailbox() {
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
