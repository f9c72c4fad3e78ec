//! `GET` and `DELETE /api/me`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::rows::ManagedKind;
use tempmail_tests::{App, rows};

#[tokio::test(flavor = "multi_thread")]
async fn returns_role_quota_and_usage() {
    let app = App::start().await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    let pro = app.mailbox(Some(&app.tenant.pro), "pro@inbox.localhost").await;
    app.deliver("pro@inbox.localhost", "one", "").await;
    app.deliver("pro+tag@inbox.localhost", "two", "").await;
    for (mailbox, role, used) in [(&free, "free", 0), (&pro, "pro", sizes(&app, &pro).await)] {
        let me = app.get_mailbox(mailbox, "/api/me").await.expect(200);
        assert_eq!(
            me,
            json!({
                "id": mailbox.id,
                "address": mailbox.address,
                "role": role,
                "quota": 52_428_800,
                "used": used,
                "created_at": me["created_at"],
            })
        );
        let created = me["created_at"].as_str().unwrap();
        assert_eq!((created.len(), created.ends_with('Z')), (24, true), "{created}");
    }
}

async fn sizes(app: &App, mailbox: &tempmail_tests::app::Mailbox) -> u64 {
    app.messages(mailbox).await.iter().map(|message| message["size"].as_u64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn invalidates_jwts_and_removes_mail() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "mine", "").await;
    app.deliver("stays@inbox.localhost", "other", "").await;
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let second = app.sign_in(&mailbox.address, &mailbox.password).await.expect(200);

    app.delete_mailbox(&mailbox).await;
    for jwt in [mailbox.jwt.as_str(), second["token"].as_str().unwrap()] {
        for path in ["/api/me", "/api/messages"] {
            let answer = app.request(Method::GET, path).bearer(jwt).send().await;
            answer.assert_api_error(401, "invalid_token");
        }
    }
    app.get(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM message").await, 1, "the rows of the mailbox are deleted");
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 1);
    assert_eq!(app.emails("stays@inbox.localhost").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_deletion_of_a_mailbox_managed_by_kubernetes() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "managed@inbox.localhost").await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Mailbox, mailbox.id).await;
    let answer = app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await;
    answer.assert_api_error(409, "managed_by_kubernetes");
    app.deliver(&mailbox.address, "still here", "").await;
    let messages = app.messages(&mailbox).await;
    assert_eq!(messages[0]["subject"], "still here");
    // Its mail is not managed.
    let path = format!("/api/messages/{}", messages[0]["id"].as_str().unwrap());
    assert_eq!(app.request(Method::DELETE, &path).bearer(&mailbox.jwt).send().await.status, 204);
}
