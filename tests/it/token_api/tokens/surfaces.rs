//! Tokens for drop-in surfaces: `POST` of a token with `surfaces`.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::surface::DropInSurface;
use tempmail_model::token::TokenHash;
use tempmail_store::Store;
use tempmail_tests::rows::{self, TenantLimit};
use tempmail_tests::{App, Response};

use crate::pro_api::id_of;

async fn create(app: &App, path: &str, body: Value) -> Response {
    let request = app.request(Method::POST, path).json(&body);
    let request = if path.starts_with("/v1") {
        request.live(&app.tenant.live)
    } else {
        request.bearer(&app.tenant.pro)
    };
    request.send().await
}

/// The surfaces that accept a token.
async fn accepting(app: &App, token: &str) -> Vec<&'static str> {
    let store = Store::connect(&app.database().url(), 1, "tempmail tests").unwrap();
    let hash = TokenHash::from_presented_on_surface(token).expect("it has the form of a live token");
    let mut accepting = Vec::new();
    for surface in DropInSurface::ALL {
        let found = store.find_surface_token(surface, hash).await.unwrap();
        if found.is_some_and(|token| token.tenant == app.tenant.id && token.revoked_at.is_none()) {
            accepting.push(surface.as_str());
        }
    }
    accepting
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_live_token_for_surfaces() {
    let app = App::start().await;
    for (path, body, surfaces) in [
        ("/v1/tokens", json!({ "name": "n", "surfaces": ["mailpit"] }), json!(["mailpit"])),
        (
            "/v1/tokens",
            json!({ "name": "n", "surfaces": ["mailosaur", "mailhog", "mailosaur"] }),
            json!(["mailhog", "mailosaur"]),
        ),
        ("/pro/api/tokens", json!({ "name": "n", "surfaces": ["mailosaur"] }), json!(["mailosaur"])),
        (
            "/pro/api/tokens",
            json!({ "name": "n", "kind": "live", "surfaces": ["mailpit"] }),
            json!(["mailpit"]),
        ),
    ] {
        let created = create(&app, path, body).await.expect(201);
        assert_eq!((&created["kind"], &created["surfaces"]), (&json!("live"), &surfaces));
        let token = created["token"].as_str().unwrap();
        assert!(token.starts_with("tm_live_") && token.len() == 72);
        assert_eq!(json!(accepting(&app, token).await), surfaces);
        for list in [app.get("/v1/tokens").await, pro_list(&app).await] {
            let listed = list.expect(200);
            let tokens = listed["tokens"].as_array().unwrap();
            let listed = tokens.iter().find(|listed| listed["id"] == created["id"]).expect("it is listed");
            assert_eq!(listed["surfaces"], surfaces);
        }
    }
}

async fn pro_list(app: &App) -> Response {
    app.request(Method::GET, "/pro/api/tokens").bearer(&app.tenant.pro).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_without_surfaces_are_for_none() {
    let app = App::start().await;
    let minted = app.mint(&app.tenant.live, "ship@inbox.localhost").await.token;
    for token in [&app.tenant.live, &minted] {
        assert!(accepting(&app, token).await.is_empty());
    }
    for surfaces in [json!([]), json!(null)] {
        let created =
            create(&app, "/v1/tokens", json!({ "name": "n", "surfaces": surfaces })).await.expect(201);
        assert_eq!(created["surfaces"], json!([]));
        let token = created["token"].as_str().unwrap();
        assert_eq!(app.get_as(token, "/v1/tokens").await.status, 200);
        assert!(accepting(&app, token).await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn is_revoked_and_counted_as_any_other() {
    let app = App::start().await;
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Tokens, 3).await;
    let body = json!({ "name": "n", "surfaces": ["mailpit"] });
    let created = create(&app, "/v1/tokens", body.clone()).await.expect(201);
    create(&app, "/v1/tokens", body.clone()).await.assert_v1_error(403, "token_limit_reached");
    assert_eq!(app.delete(&format!("/v1/tokens/{}", id_of(&created))).await.status, 204);
    assert!(accepting(&app, created["token"].as_str().unwrap()).await.is_empty());
    assert_eq!(create(&app, "/v1/tokens", body).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_a_removed_surface_is_listed_and_revoked_and_works_nowhere() {
    let app = App::builder().drop_ins().start().await;
    let created =
        create(&app, "/v1/tokens", json!({ "name": "n", "surfaces": ["mailpit"] })).await.expect(201);
    let token = created["token"].as_str().unwrap();
    // As a former version stored it.
    let former = sqlx::query("UPDATE api_token SET surfaces = '{mailtm}' WHERE surfaces = '{mailpit}'");
    assert_eq!(former.execute(&app.pool).await.unwrap().rows_affected(), 1);
    for list in [app.get("/v1/tokens").await, pro_list(&app).await] {
        let listed = list.expect(200);
        let mut listed = listed["tokens"].as_array().unwrap().iter();
        assert_eq!(
            listed.find(|listed| listed["id"] == created["id"]).unwrap()["surfaces"],
            json!(["mailtm"])
        );
    }
    for surface in DropInSurface::ALL {
        for path in ["/api/v1/messages", "/api/v2/messages", "/api/servers", "/messages", "/me"] {
            let answer = app.drop_in_request(surface, Method::GET, path).bearer(token).send().await;
            assert!([401, 404].contains(&answer.status), "{surface:?} {path}: {answer:?}");
        }
    }
    app.get_as(token, "/v1/tokens").await.assert_v1_error(401, "invalid_token");
    let account = json!({ "address": "made@inbox.localhost", "password": "correct horse" });
    let account = app.request(Method::POST, "/api/accounts").bearer(token).json(&account).send().await;
    account.assert_api_error(401, "invalid_token");
    assert_eq!(app.delete(&format!("/v1/tokens/{}", id_of(&created))).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn says_that_a_surface_was_removed() {
    let app = App::start().await;
    for surfaces in [json!(["mailtm"]), json!(["mailpit", "mailtm"])] {
        let body = json!({ "name": "n", "surfaces": surfaces });
        create(&app, "/v1/tokens", body.clone()).await.assert_v1_error(400, "invalid_request");
        let answer = create(&app, "/pro/api/tokens", body).await;
        answer.assert_api_error(400, "invalid_request");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("`mailtm` was removed"), "{message}");
    }
    assert_eq!(app.count("SELECT count(*) FROM api_token WHERE surfaces <> '{}'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_unknown_surfaces_and_other_kinds() {
    let app = App::start().await;
    for body in [
        json!({ "name": "n", "surfaces": ["mailslurp"] }),
        json!({ "name": "n", "surfaces": ["Mailpit"] }),
        json!({ "name": "n", "surfaces": "mailpit" }),
        json!({ "name": "n", "surfaces": [7] }),
        json!({ "name": "n", "surfaces": ["mailpit"], "kind": "pro" }),
        json!({ "name": "n", "surfaces": ["mailpit"], "address": "ship@inbox.localhost" }),
    ] {
        create(&app, "/v1/tokens", body.clone()).await.assert_v1_error(400, "invalid_request");
        let answer = create(&app, "/pro/api/tokens", body.clone()).await;
        answer.assert_api_error(400, "invalid_request");
    }
    let answer = create(&app, "/pro/api/tokens", json!({ "name": "n", "surfaces": ["mailslurp"] })).await;
    assert!(answer.json()["message"].as_str().unwrap().contains("`mailpit`"), "{}", answer.text());
}
