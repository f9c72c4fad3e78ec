//! `tempmail tenant suspend` and `resume`

use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::App;
use tempmail_tests::wait::within_deadline;

use super::is_answered;

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_suspended_tenant_on_every_surface() {
    let app = App::start().await;
    let acme = app.another_tenant("acme").await;
    let mailbox = app.mailbox(Some(&acme.pro), "own@inbox.localhost").await;
    app.custom_domain(&acme, "ships.example").await;
    app.deliver(&mailbox.address, "before", "").await;
    let session = json!({"token": acme.pro});
    let session = app.request(Method::POST, "/pro/api/session").json(&session).send().await.expect(200);
    let session = session["token"].as_str().unwrap().to_owned();
    let waiting = app.start_long_poll(&acme.live, "/v1/inbox/none@inbox.localhost").await;

    assert_eq!(app.tempmail("tenant suspend acme").await.success(), "suspended tenant acme");
    within_deadline("the open wait ends", waiting).await.unwrap().assert_v1_error(403, "account_disabled");
    app.get_as(&acme.live, "/v1/inbox/own@inbox.localhost").await.assert_v1_error(403, "account_disabled");
    for credential in [&acme.pro, &session] {
        let answer = app.request(Method::GET, "/pro/api/accounts").bearer(credential).send().await;
        answer.assert_api_error(403, "account_disabled");
    }
    let refused = app.create_mailbox(Some(&acme.pro), "more@inbox.localhost", "correct horse").await;
    refused.assert_api_error(403, "account_disabled");
    for path in ["/api/messages", "/api/me"] {
        app.get_mailbox(&mailbox, path).await.assert_api_error(403, "account_disabled");
    }
    let body = json!({"address": mailbox.address, "password": mailbox.password});
    let sign_in = || app.request(Method::POST, "/api/token").json(&body).send();
    sign_in().await.assert_api_error(403, "account_disabled");
    let session = json!({"token": acme.pro});
    let open = app.request(Method::POST, "/pro/api/session").json(&session).send().await;
    open.assert_api_error(403, "account_disabled");
    for recipient in ["own@inbox.localhost", "own+tag@inbox.localhost", "any@ships.example"] {
        is_answered(&app, recipient, "550 5.2.1").await;
    }
    assert_eq!(app.get("/v1/inbox/own@inbox.localhost").await.status, 404, "to others it is as before");
    app.deliver("none@inbox.localhost", "others go on", "").await;
    assert_eq!(app.emails("none@inbox.localhost").await.len(), 1);

    assert_eq!(app.tempmail("tenant resume acme").await.success(), "resumed tenant acme");
    assert_eq!(app.emails_as(&acme.live, &mailbox.address).await[0]["subject"], "before");
    assert_eq!(app.messages(&mailbox).await.len(), 1);
    assert_eq!(sign_in().await.status, 200);
    assert_eq!(app.request(Method::GET, "/pro/api/accounts").bearer(&acme.pro).send().await.status, 200);
    app.deliver("any@ships.example", "after", "").await;
    assert_eq!(app.emails_as(&acme.live, "any@ships.example").await[0]["subject"], "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_a_suspended_tenant_and_creates_no_token_for_it() {
    let app = App::start().await;
    assert_eq!(app.tempmail("tenant suspend harbour --json").await.json()["suspended"], true);
    assert_eq!(app.tempmail("tenant suspend harbour --json").await.json()["suspended"], true, "again");
    assert!(app.tempmail("tenant list").await.success().contains("harbour   suspended"));
    let refused = app.tempmail("token create harbour --kind live").await;
    assert_eq!(refused.failure(), "the tenant harbour is suspended: resume it first");
    assert_eq!(app.tempmail("tenant resume harbour --json").await.json()["suspended"], false);
    app.tempmail("token create harbour --kind live").await.success();
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_to_suspend_platform() {
    let app = App::start().await;
    let refusal = app.tempmail("tenant suspend platform").await;
    assert!(refusal.failure().starts_with("the tenant platform can't be suspended"), "{}", refusal.stderr);
    app.deliver("postmaster@inbox.localhost", "help", "").await;
    let token = app.tempmail("token create platform --kind live").await;
    assert_eq!(app.emails_as(token.success(), "postmaster@inbox.localhost").await[0]["subject"], "help");
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_a_long_poll_of_another_tenant_open() {
    let app = App::start().await;
    let acme = app.another_tenant("acme").await;
    let other = app.token(&app.tenant, TokenKind::Live).await;
    let theirs = app.start_long_poll(&acme.live, "/v1/inbox/both@inbox.localhost").await;
    let ours = app.start_long_poll(&other, "/v1/inbox/both@inbox.localhost").await;
    app.tempmail("tenant suspend acme").await.success();
    within_deadline("their wait ends", theirs).await.unwrap().assert_v1_error(403, "account_disabled");
    app.deliver("both@inbox.localhost", "hello", "").await;
    let answer = within_deadline("our wait goes on", ours).await.unwrap().expect(200);
    assert_eq!(answer["emails"][0]["subject"], "hello");
}
