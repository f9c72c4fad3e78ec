//! `GET /pro/api/tokens`

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_tests::App;
use tempmail_tests::rows;
use tempmail_tests::wait::eventually;

use crate::pro_api::{assert_accepts_only_pro_tokens, assert_time, pro};

async fn list(app: &App, query: &str) -> Vec<Value> {
    let answer = pro(app, Method::GET, &format!("/pro/api/tokens{query}")).send().await.expect(200);
    let tokens = answer["tokens"].as_array().unwrap().clone();
    assert_eq!(answer, json!({ "tokens": tokens }));
    tokens
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::GET, "/pro/api/tokens").await;
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
    for query in ["?page=0", "?page=-1", "?page=x", "?page="] {
        let answer = pro(&app, Method::GET, &format!("/pro/api/tokens{query}")).send().await;
        answer.assert_api_error(400, "invalid_request");
    }
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
