//! `DELETE /pro/api/tokens/{id}`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{Answer, App};
use uuid::Uuid;

use crate::pro_api::{id_of, ids_of_nothing, is_alike, is_for_pro_alone, is_time, manage, pro};

const PATH: &str = "/pro/api/tokens";

async fn revoke(app: &App, id: impl std::fmt::Display) -> Answer {
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
async fn it_is_for_pro_tokens_alone() {
    is_for_pro_alone(Method::DELETE, &format!("{PATH}/019a0000-0000-7000-8000-000000000000")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_refused_at_once_and_stays_listed() {
    let app = App::start().await;
    for kind in ["pro", "live"] {
        let (id, token) = created(&app, kind).await;
        let answer = revoke(&app, id).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0));
        if kind == "pro" {
            let refused = app.request(Method::GET, PATH).bearer(&token).send().await;
            refused.is_api_error(401, "invalid_token");
            let mailbox = app.create_mailbox(Some(&token), "name@inbox.localhost", "pass123").await;
            mailbox.is_api_error(401, "invalid_token");
        } else {
            app.get_as(&token, "/v1/tokens").await.is_v1_error(401, "invalid_token");
        }
        is_time(&listed(&app, &app.tenant.pro, id).await["revoked_at"]);
        revoke(&app, id).await.is_api_error(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_may_revoke_itself() {
    let app = App::start().await;
    let (id, token) = created(&app, "pro").await;
    let path = format!("{PATH}/{id}");
    assert_eq!(app.request(Method::DELETE, &path).bearer(&token).send().await.status, 204);
    let again = app.request(Method::DELETE, &path).bearer(&token).send().await;
    again.is_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_wait_of_it_ends_with_401() {
    let app = App::start().await;
    let (id, token) = created(&app, "live").await;
    let kept = app.token(&app.tenant, TokenKind::Live).await;
    let wait = app.start_long_poll(&token, "/v1/inbox/ship@inbox.localhost").await;
    let other = app.start_long_poll(&kept, "/v1/inbox/ship@inbox.localhost").await;
    assert_eq!(revoke(&app, id).await.status, 204);
    within_deadline("the wait ends", wait).await.unwrap().is_v1_error(401, "invalid_token");
    app.deliver("ship@inbox.localhost", "for the other", "").await;
    assert_eq!(within_deadline("the other goes on", other).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_the_tenants_is_as_one_that_is_not_there() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.request(Method::GET, PATH).bearer(&other.pro).send().await.expect(200);
    let mut ids = ids_of_nothing(&app);
    ids.extend(theirs["tokens"].as_array().unwrap().iter().map(|token| id_of(token).to_string()));
    let (revoked, _) = created(&app, "pro").await;
    assert_eq!(revoke(&app, revoked).await.status, 204);
    ids.push(revoked.to_string());
    let first = revoke(&app, &ids[0]).await;
    first.is_api_error(404, "not_found");
    for id in ids {
        is_alike(&revoke(&app, id).await, &first);
    }
    revoke(&app, "%FF").await.is_api_error(400, "invalid_request");
    assert_eq!(app.request(Method::GET, PATH).bearer(&other.pro).send().await.status, 200);
    assert_eq!(app.get_as(&other.live, "/v1/tokens").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_kubernetes_manages_stays() {
    let app = App::start().await;
    let (id, token) = created(&app, "pro").await;
    manage(&app, "UPDATE api_token SET managed_by = 'kubernetes' WHERE id = $1", id).await;
    revoke(&app, id).await.is_api_error(409, "managed_by_kubernetes");
    let itself = app.request(Method::DELETE, &format!("{PATH}/{id}")).bearer(&token).send().await;
    itself.is_api_error(409, "managed_by_kubernetes");
    assert_eq!(listed(&app, &token, id).await["revoked_at"], Value::Null);
}
