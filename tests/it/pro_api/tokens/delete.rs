//! `DELETE /pro/api/tokens/{id}`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, Response};
use uuid::Uuid;

use crate::pro_api::{
    assert_accepts_only_pro_tokens, assert_all_unknown, assert_time, id_of, pro, unknown_ids,
};

const PATH: &str = "/pro/api/tokens";

async fn revoke(app: &App, id: impl std::fmt::Display) -> Response {
    pro(app, Method::DELETE, &format!("{PATH}/{id}")).send().await
}

async fn created(app: &App, kind: &str) -> (Uuid, String) {
    let body = json!({ "name": "mine", "kind": kind });
    let created = pro(app, Method::POST, PATH).json(&body).send().await.expect(201);
    (id_of(&created), created["token"].as_str().unwrap().to_owned())
}

/// The record of a token in the tenant's list.
async fn listed(app: &App, credential: &str, id: Uuid) -> Value {
    let list = app.request(Method::GET, PATH).bearer(credential).send().await.expect(200);
    list["tokens"].as_array().unwrap().iter().find(|token| id_of(token) == id).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::DELETE, &format!("{PATH}/019a0000-0000-7000-8000-000000000000"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_revoked_token_at_once_and_keeps_it_listed() {
    let app = App::start().await;
    for kind in ["pro", "live"] {
        let (id, token) = created(&app, kind).await;
        let answer = revoke(&app, id).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0));
        if kind == "pro" {
            let refused = app.request(Method::GET, PATH).bearer(&token).send().await;
            refused.assert_api_error(401, "invalid_token");
            let mailbox = app.create_mailbox(Some(&token), "name@inbox.localhost", "pass123").await;
            mailbox.assert_api_error(401, "invalid_token");
        } else {
            app.get_as(&token, "/v1/tokens").await.assert_v1_error(401, "invalid_token");
        }
        assert_time(&listed(&app, &app.tenant.pro, id).await["revoked_at"]);
        revoke(&app, id).await.assert_api_error(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lets_a_token_revoke_itself() {
    let app = App::start().await;
    let (id, token) = created(&app, "pro").await;
    let path = format!("{PATH}/{id}");
    assert_eq!(app.request(Method::DELETE, &path).bearer(&token).send().await.status, 204);
    let again = app.request(Method::DELETE, &path).bearer(&token).send().await;
    again.assert_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_a_pending_long_poll_with_401() {
    let app = App::start().await;
    let (id, token) = created(&app, "live").await;
    let kept = app.token(&app.tenant, TokenKind::Live).await;
    let wait = app.start_long_poll(&token, "/v1/inbox/ship@inbox.localhost").await;
    let other = app.start_long_poll(&kept, "/v1/inbox/ship@inbox.localhost").await;
    assert_eq!(revoke(&app, id).await.status, 204);
    within_deadline("the wait ends", wait).await.unwrap().assert_v1_error(401, "invalid_token");
    app.deliver("ship@inbox.localhost", "for the other", "").await;
    assert_eq!(within_deadline("the other wait continues", other).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_foreign_token_like_an_unknown_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.request(Method::GET, PATH).bearer(&other.pro).send().await.expect(200);
    let mut ids = unknown_ids(&app);
    ids.extend(theirs["tokens"].as_array().unwrap().iter().map(|token| id_of(token).to_string()));
    let (revoked, _) = created(&app, "pro").await;
    assert_eq!(revoke(&app, revoked).await.status, 204);
    ids.push(revoked.to_string());
    assert_all_unknown(&ids, async |id| revoke(&app, id).await).await;
    revoke(&app, "%FF").await.assert_api_error(400, "invalid_request");
    assert_eq!(app.request(Method::GET, PATH).bearer(&other.pro).send().await.status, 200);
    assert_eq!(app.get_as(&other.live, "/v1/tokens").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_revocation_of_a_token_managed_by_kubernetes() {
    let app = App::start().await;
    let (id, token) = created(&app, "pro").await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Token, id).await;
    revoke(&app, id).await.assert_api_error(409, "managed_by_kubernetes");
    let itself = app.request(Method::DELETE, &format!("{PATH}/{id}")).bearer(&token).send().await;
    itself.assert_api_error(409, "managed_by_kubernetes");
    assert_eq!(listed(&app, &token, id).await["revoked_at"], Value::Null);
}
