//! `GET` and `DELETE /api/me`

use reqwest::Method;
use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn the_account_tells_its_role_quota_and_use() {
    let app = App::start().await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    let pro = app.mailbox(Some(&app.tenant.pro), "pro@inbox.localhost").await;
    app.deliver("pro@inbox.localhost", "one", "").await;
    app.deliver("pro+tag@inbox.localhost", "two", "").await;
    for (mailbox, role, used) in [(&free, "free", 0), (&pro, "pro", sizes(&app, &pro).await)] {
        let me = app.get_mailbox(mailbox, "/api/me").await.expect(200);
        assert_eq!(me["id"], mailbox.id.to_string());
        assert_eq!(me["address"], mailbox.address.as_str());
        assert_eq!(me["role"], role);
        assert_eq!(me["quota"], 52_428_800);
        assert_eq!(me["used"], used);
        assert!(me["created_at"].as_str().unwrap().ends_with('Z'));
    }
}

async fn sizes(app: &App, mailbox: &tempmail_tests::app::Mailbox) -> u64 {
    app.messages(mailbox).await.iter().map(|message| message["size"].as_u64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_the_account_ends_its_jwts_and_removes_its_mail() {
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
            answer.is_api_error(401, "invalid_token");
        }
    }
    app.get(&format!("/v1/email/{id}")).await.is_v1_error(404, "not_found");
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM message").await, 1, "the rows of the mailbox are gone");
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 1);
    assert_eq!(app.emails("stays@inbox.localhost").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_free_mailbox_nobody_looked_at_for_30_days_is_removed() {
    let app = App::start().await;
    let idle = app.mailbox(None, "idle@inbox.localhost").await;
    let used = app.mailbox(None, "used@inbox.localhost").await;
    let pro = app.mailbox(Some(&app.tenant.pro), "pro@inbox.localhost").await;
    let sign_in = |mailbox: &tempmail_tests::app::Mailbox| {
        let body = serde_json::json!({ "address": mailbox.address, "password": mailbox.password });
        app.request(Method::POST, "/api/token").json(&body).send()
    };
    app.advance_hours(24 * 20);
    assert_eq!(sign_in(&used).await.status, 200);
    app.advance_hours(24 * 11);
    app.worker_pass().await;
    sign_in(&idle).await.is_api_error(401, "invalid_credentials");
    app.create_mailbox(None, &idle.address, "pass123").await.is_api_error(409, "address_taken");
    assert_eq!(sign_in(&used).await.status, 200);
    assert_eq!(sign_in(&pro).await.status, 200);
}
