//! `/pro/api/tokens`

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Response};
use uuid::Uuid;

use super::{assert_time, id_of, pro};

async fn list(app: &App, query: &str) -> Vec<Value> {
    let answer = pro(app, Method::GET, &format!("/pro/api/tokens{query}")).send().await.expect(200);
    let tokens = answer["tokens"].as_array().unwrap().clone();
    assert_eq!(answer, json!({ "tokens": tokens }));
    tokens
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_both_kinds_with_the_documented_fields() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let tokens = list(&app, "").await;
    assert_eq!(tokens.len(), 2, "the tenant's own, of both kinds: {tokens:?}");
    for (kind, token) in [("pro", &app.tenant.pro), ("live", &app.tenant.live)] {
        let listed = tokens.iter().find(|listed| listed["kind"] == kind).unwrap();
        assert_time(&listed["created_at"]);
        let expected = json!({
            "id": listed["id"],
            "name": "test",
            "kind": kind,
            "hint": token[token.len() - 4..],
            "created_at": listed["created_at"],
            "last_used_at": listed["last_used_at"],
            "expires_at": null,
            "revoked_at": null,
            "surfaces": [],
        });
        assert_eq!(listed, &expected);
    }
    let text = json!(tokens).to_string();
    for token in [&app.tenant.pro, &app.tenant.live, &other.pro, &other.live] {
        assert!(!text.contains(&token[..token.len() - 4]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_last_use_to_the_minute() {
    let app = App::start().await;
    let used = |tokens: Vec<Value>, kind: &str| {
        let token = tokens.into_iter().find(|token| token["kind"] == kind).unwrap();
        token["last_used_at"].clone()
    };
    assert_eq!(used(list(&app, "").await, "live"), Value::Null);
    let first = eventually("the use is recorded", || async {
        let at = used(list(&app, "").await, "pro");
        (!at.is_null()).then_some(at)
    })
    .await;
    assert_time(&first);
    app.clock.advance(SignedDuration::from_secs(61));
    eventually("a later use is recorded", || async {
        let at = used(list(&app, "").await, "pro");
        (at != first).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_all_up_to_1000_then_in_pages() {
    let app = App::start().await;
    sqlx::query(
        "INSERT INTO api_token (id, tenant, kind, name, hint, hash, created_by, created_at)
         SELECT gen_random_uuid(), $1, CASE WHEN n % 2 = 0 THEN 'pro' ELSE 'live' END, n::text, 'hint',
                sha256(n::text::bytea), 'test', $2::timestamptz + n * interval '1 s'
         FROM generate_series(1, 1003) n",
    )
    .bind(app.tenant.id)
    .bind(app.clock.now().to_sqlx())
    .execute(&app.pool)
    .await
    .unwrap();
    let names = async |query: &str| -> Vec<String> {
        list(&app, query).await.iter().map(|token| token["name"].as_str().unwrap().to_owned()).collect()
    };
    let newest: Vec<String> = (4..=1003).rev().map(|n| n.to_string()).collect();
    assert_eq!(names("").await, newest);
    assert_eq!(names("?page=2").await, ["3", "2", "1", "test", "test"]);
    assert!(names("?page=3").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_ended_tokens_for_7_days() {
    for column in ["revoked_at", "expires_at"] {
        let app = App::start().await;
        match column {
            "revoked_at" => rows::revoke_token(&app.pool, &app.tenant.live, app.clock.now()).await,
            _ => rows::expire_token(&app.pool, &app.tenant.live, app.clock.now()).await,
        }
        let before = app.count("SELECT count(*) FROM api_token").await;
        // The clock also runs during the test: some minutes on either side.
        app.clock.advance(SignedDuration::from_hours(7 * 24) - SignedDuration::from_mins(5));
        let tokens = list(&app, "").await;
        let ended = tokens.iter().find(|token| token["kind"] == "live").expect(column);
        assert_time(&ended[column]);
        app.worker_pass().await;
        assert_eq!(app.count("SELECT count(*) FROM api_token").await, before);

        app.clock.advance(SignedDuration::from_mins(10));
        assert_eq!(list(&app, "").await.len(), 1, "{column}: the list depends on the clock");
        app.worker_pass().await;
        assert_eq!(app.count("SELECT count(*) FROM api_token").await, before - 1);
    }
}

const PATH: &str = "/pro/api/tokens";

async fn create(app: &App, body: Value) -> Response {
    pro(app, Method::POST, PATH).json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_token_once_and_accepts_it_on_its_surface() {
    let app = App::start().await;
    for (kind, prefix) in [(None, "tm_pro_"), (Some("pro"), "tm_pro_"), (Some("live"), "tm_live_")] {
        let body = match kind {
            None => json!({ "name": "mine ⚓" }),
            Some(kind) => json!({ "name": "mine ⚓", "kind": kind, "expires_in_days": null }),
        };
        let created = create(&app, body).await.expect(201);
        let token = created["token"].as_str().unwrap();
        let digits = token.strip_prefix(prefix).unwrap();
        assert!(digits.len() == 64 && digits.bytes().all(|b| b"0123456789abcdef".contains(&b)));
        assert_time(&created["created_at"]);
        let expected = json!({
            "id": id_of(&created),
            "name": "mine ⚓",
            "kind": kind.unwrap_or("pro"),
            "hint": token[token.len() - 4..],
            "created_at": created["created_at"],
            "last_used_at": null,
            "expires_at": null,
            "revoked_at": null,
            "surfaces": [],
            "token": token,
        });
        assert_eq!(created, expected);

        let listed = pro(&app, Method::GET, PATH).send().await;
        assert!(!listed.text().contains(digits), "the token is returned once");
        let listed = listed.expect(200);
        let mut of_list = listed["tokens"].as_array().unwrap().iter();
        let listed = of_list.find(|listed| listed["id"] == created["id"]).unwrap().clone();
        let mut without_token = created.clone();
        without_token.as_object_mut().unwrap().remove("token");
        assert_eq!(listed, without_token);

        let (on_pro, on_v1) = (
            app.request(Method::GET, PATH).bearer(token).send().await.status,
            app.get_as(token, "/v1/tokens").await.status,
        );
        assert_eq!((on_pro, on_v1), if prefix == "tm_pro_" { (200, 401) } else { (401, 200) });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_the_creator() {
    let app = App::start().await;
    let created = create(&app, json!({ "name": "mine" })).await.expect(201);
    let maker: String = sqlx::query_scalar(
        "SELECT id::text FROM api_token WHERE tenant = $1 AND kind = 'pro' AND name = 'test'",
    )
    .bind(app.tenant.id)
    .fetch_one(&app.pool)
    .await
    .unwrap();
    // A session records its token.
    let session = app.session(&app.tenant.pro).await;
    let request = app.request(Method::POST, PATH).bearer(&session).json(&json!({ "name": "by session" }));
    for created in [created, request.send().await.expect(201)] {
        let created_by: String = sqlx::query_scalar("SELECT created_by FROM api_token WHERE id = $1")
            .bind(id_of(&created))
            .fetch_one(&app.pool)
            .await
            .unwrap();
        assert_eq!(created_by, maker);
    }
}

/// `clock` has the time that passes.
#[tokio::test(flavor = "multi_thread")]
async fn expires_a_token_after_its_days() {
    let app = App::start().await;
    let created = create(&app, json!({ "name": "a day", "expires_in_days": 1 })).await.expect(201);
    let at = |field: &str| created[field].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert_eq!(at("expires_at").duration_since(at("created_at")), SignedDuration::from_hours(24));
    assert_eq!(create(&app, json!({ "name": "ten years", "expires_in_days": 3650 })).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_invalid_values_and_names_the_field() {
    let app = App::start().await;
    for (field, body) in [
        ("name", json!({ "name": "" })),
        ("name", json!({ "name": "x".repeat(101) })),
        ("name", json!({ "name": "a\nb" })),
        ("name", json!({ "name": "a\u{0}" })),
        ("name", json!({ "name": "a\u{7f}" })),
        ("name", json!({ "name": "a\u{85}" })),
        ("kind", json!({ "name": "n", "kind": "Pro" })),
        ("kind", json!({ "name": "n", "kind": "" })),
        ("expires_in_days", json!({ "name": "n", "expires_in_days": 0 })),
        ("expires_in_days", json!({ "name": "n", "expires_in_days": -1 })),
        ("expires_in_days", json!({ "name": "n", "expires_in_days": 3651 })),
        ("expires_in_days", json!({ "name": "n", "expires_in_days": u64::MAX })),
    ] {
        let answer = create(&app, body.clone()).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        answer.assert_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains(field), "{}", answer.text());
    }
    let longest = json!({ "name": "é".repeat(100), "kind": null, "colour": "red" });
    assert_eq!(
        create(&app, longest).await.status,
        201,
        "the limit is in characters, and unknown fields are ignored"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_a_tenant_to_20_active_tokens() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mut last = Value::Null;
    for n in 3..=20 {
        let kind = if n % 2 == 0 { "pro" } else { "live" };
        let expires = (n == 20).then_some(1);
        last =
            create(&app, json!({ "name": "n", "kind": kind, "expires_in_days": expires })).await.expect(201);
    }
    for kind in ["pro", "live"] {
        let answer = create(&app, json!({ "name": "n", "kind": kind })).await;
        answer.assert_api_error(403, "token_limit_reached");
    }
    let theirs =
        app.request(Method::POST, PATH).bearer(&other.pro).json(&json!({ "name": "n" })).send().await;
    assert_eq!(theirs.status, 201, "another tenant has a limit of its own");

    let path = format!("{PATH}/{}", id_of(&last));
    assert_eq!(pro(&app, Method::DELETE, &path).send().await.status, 204);
    let expiring = create(&app, json!({ "name": "n", "expires_in_days": 1 })).await;
    assert_eq!(expiring.status, 201, "a revoked token does not count");
    create(&app, json!({ "name": "n" })).await.assert_api_error(403, "token_limit_reached");
    app.advance_hours(24);
    assert_eq!(create(&app, json!({ "name": "n" })).await.status, 201, "nor does an expired one");
    create(&app, json!({ "name": "n" })).await.assert_api_error(403, "token_limit_reached");
}

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
async fn rejects_the_revocation_of_a_token_managed_by_kubernetes() {
    let app = App::start().await;
    let (id, token) = created(&app, "pro").await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Token, id).await;
    revoke(&app, id).await.assert_api_error(409, "managed_by_kubernetes");
    let itself = app.request(Method::DELETE, &format!("{PATH}/{id}")).bearer(&token).send().await;
    itself.assert_api_error(409, "managed_by_kubernetes");
    assert_eq!(listed(&app, &token, id).await["revoked_at"], Value::Null);
}
