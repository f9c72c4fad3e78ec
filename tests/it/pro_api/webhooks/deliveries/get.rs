//! `GET /pro/api/webhooks/{id}/deliveries`

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::{id_time, new_id};
use tempmail_tests::{App, Response};
use uuid::Uuid;

use crate::pro_api::webhooks::webhook;
use crate::pro_api::{
    assert_accepts_only_pro_tokens, assert_all_unknown, assert_time, id_of, pro, unknown_ids,
};

async fn list(app: &App, id: impl std::fmt::Display, query: &str) -> Response {
    pro(app, Method::GET, &format!("/pro/api/webhooks/{id}/deliveries{query}")).send().await
}

/// Records an attempt as the worker does, at the time of the clock.
pub(in crate::pro_api::webhooks) async fn attempt(
    app: &App,
    webhook: Uuid,
    status: i32,
    error: Option<&str>,
    attempt: i32,
) -> Uuid {
    let now = app.clock.now();
    let id = new_id(now);
    let day = sqlx::query("SELECT ensure_delivery_partition($1)").bind(now.to_sqlx()).execute(&app.pool);
    day.await.unwrap();
    sqlx::query(
        "INSERT INTO webhook_delivery (webhook, id, event_type, event_id, status_code, error, attempt, duration_ms)
         VALUES ($1, $2, 'email.received', 'evt_1', $3, $4, $5, 12)",
    )
    .bind(webhook)
    .bind(id)
    .bind(status)
    .bind(error)
    .bind(attempt)
    .execute(&app.pool)
    .await
    .unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(
        Method::GET,
        "/pro/api/webhooks/019a0000-0000-7000-8000-000000000000/deliveries",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_attempts_newest_first_with_the_documented_fields() {
    let app = App::start().await;
    let webhook = id_of(&webhook(&app, &app.tenant.pro).await);
    assert_eq!(list(&app, webhook, "").await.expect(200), json!({ "deliveries": [] }));
    let mut expected: Vec<Value> = Vec::new();
    for (number, status, error) in [(1, 0, Some("timeout")), (2, 500, Some("http_status")), (3, 204, None)] {
        let id = attempt(&app, webhook, status, error, number).await;
        let at = id_time(id).unwrap();
        expected.insert(
            0,
            json!({
                "id": id,
                "event_type": "email.received",
                "event_id": "evt_1",
                "status_code": status,
                "error": error,
                "detail": null,
                "given_up": false,
                "attempt": number,
                "duration_ms": 12,
                "created_at": format!("{at:.3}"),
            }),
        );
        app.clock.advance(SignedDuration::from_secs(5));
    }
    assert_time(&expected[0]["created_at"]);
    assert_eq!(list(&app, webhook, "").await.expect(200), json!({ "deliveries": expected }));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_50_attempts_or_up_to_a_limit_of_100() {
    let app = App::start().await;
    let webhook = id_of(&webhook(&app, &app.tenant.pro).await);
    for number in 1..=110 {
        attempt(&app, webhook, 200, None, number).await;
        app.clock.advance(SignedDuration::from_secs(1));
    }
    for (query, length) in [
        ("", 50),
        ("?limit=1", 1),
        ("?limit=70", 70),
        ("?limit=101", 100),
        ("?limit=99999999999999999999", 100),
    ] {
        let listed = list(&app, webhook, query).await.expect(200);
        let attempts: Vec<i64> =
            listed["deliveries"].as_array().unwrap().iter().map(|d| d["attempt"].as_i64().unwrap()).collect();
        assert_eq!(attempts, (0..length).map(|i| 110 - i).collect::<Vec<i64>>(), "{query}");
    }
    for query in ["?limit=0", "?limit=-1", "?limit=x", "?limit=", "?limit=1.5", "?limit=1&limit=1"] {
        let answer = list(&app, webhook, query).await;
        answer.assert_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains("limit"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_attempts_for_7_days() {
    let app = App::start().await;
    let webhook = id_of(&webhook(&app, &app.tenant.pro).await);
    attempt(&app, webhook, 200, None, 1).await;
    app.clock.advance(SignedDuration::from_secs(7 * 24 * 3600 - 300));
    attempt(&app, webhook, 200, None, 2).await;
    let count = async || list(&app, webhook, "").await.expect(200)["deliveries"].as_array().unwrap().len();
    assert_eq!(count().await, 2);
    app.clock.advance(SignedDuration::from_secs(600));
    assert_eq!(count().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_foreign_webhook_like_an_unknown_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = id_of(&webhook(&app, &other.pro).await);
    attempt(&app, theirs, 200, None, 1).await;
    let own = id_of(&webhook(&app, &app.tenant.pro).await);
    assert_eq!(list(&app, own, "").await.expect(200), json!({ "deliveries": [] }), "none of another webhook");
    let mut ids = unknown_ids(&app);
    ids.push(theirs.to_string());
    assert_all_unknown(&ids, async |id| list(&app, id, "").await).await;
    list(&app, "%FF", "").await.assert_api_error(400, "invalid_request");
}
