//! `DELETE /v1/inbox/<address>`

use tempmail_tests::App;

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
