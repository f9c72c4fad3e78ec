//! Rights that end while a request waits, and mail that is gone by then.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, rows};

use super::{ADDRESS, look, on_address, subject};

#[tokio::test(flavor = "multi_thread")]
async fn ends_with_401_403_or_440_with_its_token() {
    let app = App::start().await;
    let tenant = app.another_tenant("suspended").await;
    let (revoked, expired) =
        (app.token(&app.tenant, TokenKind::Live).await, app.token(&app.tenant, TokenKind::Live).await);
    rows::expire_token(&app.pool, &expired, app.clock.now() + SignedDuration::from_hours(1)).await;
    let body = on_address(&json!({ "match": { "subject": "wanted" } }));
    let mut waits = Vec::new();
    for token in [&revoked, &expired, &tenant.live] {
        waits.push(app.start_mail_wait(token, &body).await);
    }
    let kept = app.start_mail_wait(&app.tenant.live, &body).await;
    let listed = app.get("/v1/tokens").await.expect(200);
    let hint = |token: &str| token[token.len() - 4..].to_owned();
    let id = listed["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .find(|record| record["hint"].as_str().is_some_and(|shown| shown.ends_with(&hint(&revoked))));
    let id = id.expect("the token is listed")["id"].as_str().unwrap().to_owned();
    assert_eq!(app.delete(&format!("/v1/tokens/{id}")).await.status, 204);
    rows::suspend_tenant(&app.pool, tenant.id).await;
    app.clock.advance(SignedDuration::from_mins(61));
    let expected = [(401, "invalid_token"), (440, "session_expired"), (403, "account_disabled")];
    for (wait, (status, code)) in waits.into_iter().zip(expected) {
        within_deadline("the wait ends", wait).await.unwrap().assert_v1_error(status, code);
    }
    app.deliver(ADDRESS, "wanted", "").await;
    assert_eq!(subject(&within_deadline("the other goes on", kept).await.unwrap().expect(200)), "wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_with_404_when_the_address_or_the_domain_is_no_longer_the_tenants() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let domain = app.custom_domain(&app.tenant, "lost.example").await;
    let tokens = [
        app.token(&app.tenant, TokenKind::Live).await,
        app.token(&app.tenant, TokenKind::Live).await,
        app.token(&app.tenant, TokenKind::Live).await,
    ];
    let bodies = [
        json!({ "address": "box@inbox.localhost" }),
        json!({ "domain": "lost.example", "since": "0" }),
        on_address(&json!({})),
    ];
    let mut waits = Vec::new();
    for (token, body) in tokens.iter().zip(&bodies) {
        waits.push(app.start_mail_wait(token, body).await);
    }
    let all = app.start_mail_wait(&app.tenant.live, &json!({ "all": true, "since": "0" })).await;
    let deleted = app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await;
    assert_eq!(deleted.status, 204);
    app.end_verification(domain).await;
    app.mailbox(None, ADDRESS).await;
    for wait in waits {
        within_deadline("the wait ends", wait).await.unwrap().assert_v1_error(404, "not_found");
    }
    app.custom_domain(&app.tenant, "kept.example").await;
    app.deliver("any@kept.example", "goes on", "").await;
    assert_eq!(subject(&within_deadline("what is owned", all).await.unwrap().expect(200)), "goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_no_mail_that_was_deleted_or_has_expired() {
    let app = App::start().await;
    let since = app.cursor_as(&app.tenant.live).await;
    app.deliver(ADDRESS, "deleted", "").await;
    app.deliver(ADDRESS, "kept", "").await;
    let id = app.emails(ADDRESS).await[1]["id"].as_str().unwrap().to_owned();
    assert_eq!(app.delete(&format!("/v1/email/{id}")).await.status, 204);
    assert_eq!(subject(&look(&app, &json!({ "since": since })).await.expect(200)), "kept");
    app.clock.advance(SignedDuration::from_mins(61));
    assert_eq!(look(&app, &json!({ "since": since })).await.status, 204);
    app.deliver(ADDRESS, "cleared", "").await;
    assert_eq!(app.delete(&format!("/v1/inbox/{ADDRESS}")).await.status, 204);
    app.deliver(ADDRESS, "new", "").await;
    assert_eq!(subject(&look(&app, &json!({ "since": since })).await.expect(200)), "new");
}

/// Mail is deleted as fast as it arrives, while waits look for it: what is answered can still be read, or was deleted
/// after the answer.
#[tokio::test(flavor = "multi_thread")]
async fn answers_a_wait_while_mail_is_deleted_as_it_arrives() {
    let app = App::start().await;
    let second = app.token(&app.tenant, TokenKind::Live).await;
    let since = app.cursor_as(&app.tenant.live).await;
    let body = on_address(&json!({ "since": since, "match": { "text": "needle" } }));
    let wait = app.start_mail_wait(&app.tenant.live, &body).await;
    for _ in 0..5 {
        app.deliver(ADDRESS, "other", "nothing").await;
        let clear = app.request(Method::DELETE, &format!("/v1/inbox/{ADDRESS}")).live(&second).send().await;
        assert_eq!(clear.status, 204);
    }
    app.deliver(ADDRESS, "wanted", "the needle").await;
    let answer = within_deadline("the wait is answered", wait).await.unwrap().expect(200);
    assert_eq!(subject(&answer), "wanted");
}
