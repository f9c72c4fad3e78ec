//! `DELETE /api/me`

use reqwest::Method;
use tempmail_tests::App;
use tempmail_tests::rows::{self, ManagedKind};

#[tokio::test(flavor = "multi_thread")]
async fn invalidates_jwts_and_removes_mail() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "mine", "").await;
    app.deliver("stays@inbox.localhost", "other", "").await;
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let body = serde_json::json!({ "address": mailbox.address, "password": mailbox.password });
    let second = app.request(Method::POST, "/api/token").json(&body).send().await.expect(200);

    let deleted = app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await;
    assert_eq!(deleted.status, 204);
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
