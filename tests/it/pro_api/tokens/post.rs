//! `POST /pro/api/tokens`

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::{App, Response};

use crate::pro_api::{assert_accepts_only_pro_tokens, assert_rejects_bad_bodies, assert_time, id_of, pro};

const PATH: &str = "/pro/api/tokens";

async fn create(app: &App, body: Value) -> Response {
    pro(app, Method::POST, PATH).json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::POST, PATH).await;
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
async fn stores_a_hash_and_the_creator() {
    let app = App::start().await;
    let created = create(&app, json!({ "name": "mine" })).await.expect(201);
    let token = created["token"].as_str().unwrap();
    let digits = token.strip_prefix("tm_pro_").unwrap();
    let (row, created_by): (String, String) =
        sqlx::query_as("SELECT k::text, created_by FROM api_token k WHERE id = $1")
            .bind(id_of(&created))
            .fetch_one(&app.pool)
            .await
            .unwrap();
    assert!(!row.contains(digits) && !row.contains(&digits[..16]), "{row}");
    let maker: String = sqlx::query_scalar(
        "SELECT id::text FROM api_token WHERE tenant = $1 AND kind = 'pro' AND name = 'test'",
    )
    .bind(app.tenant.id)
    .fetch_one(&app.pool)
    .await
    .unwrap();
    assert_eq!(created_by, maker);
    // A session records its token.
    let body = json!({ "token": app.tenant.pro });
    let session = app.request(Method::POST, "/pro/api/session").json(&body).send().await.expect(200);
    let session = session["token"].as_str().unwrap();
    let request = app.request(Method::POST, PATH).bearer(session).json(&json!({ "name": "by session" }));
    let created = request.send().await.expect(201);
    let created_by: String = sqlx::query_scalar("SELECT created_by FROM api_token WHERE id = $1")
        .bind(id_of(&created))
        .fetch_one(&app.pool)
        .await
        .unwrap();
    assert_eq!(created_by, maker);
}

#[tokio::test(flavor = "multi_thread")]
async fn expires_a_token_after_its_days() {
    let app = App::start().await;
    let created = create(&app, json!({ "name": "a day", "expires_in_days": 1 })).await.expect(201);
    let at = |field: &str| created[field].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert_eq!(at("expires_at").duration_since(at("created_at")), SignedDuration::from_hours(24));
    let token = created["token"].as_str().unwrap();
    app.clock.advance(SignedDuration::from_secs(24 * 3600 - 300));
    assert_eq!(app.request(Method::GET, PATH).bearer(token).send().await.status, 200);
    app.clock.advance(SignedDuration::from_secs(600));
    let expired = app.request(Method::GET, PATH).bearer(token).send().await;
    expired.assert_api_error(440, "session_expired");
    let mailbox = app.create_mailbox(Some(token), "name@inbox.localhost", "pass123").await;
    mailbox.assert_api_error(440, "session_expired");
    assert_eq!(create(&app, json!({ "name": "ten years", "expires_in_days": 3650 })).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_malformed_body_and_names_the_field() {
    let app = App::start().await;
    assert_rejects_bad_bodies(&app, Method::POST, PATH).await;
    for (field, body) in [
        ("name", json!({})),
        ("name", json!({ "name": null })),
        ("name", json!({ "name": 1 })),
        ("name", json!({ "name": "" })),
        ("name", json!({ "name": "x".repeat(101) })),
        ("name", json!({ "name": "a\nb" })),
        ("name", json!({ "name": "a\u{0}" })),
        ("name", json!({ "name": "a\u{7f}" })),
        ("name", json!({ "name": "a\u{85}" })),
        ("kind", json!({ "name": "n", "kind": "Pro" })),
        ("kind", json!({ "name": "n", "kind": "" })),
        ("kind", json!({ "name": "n", "kind": 1 })),
        ("expires_in_days", json!({ "name": "n", "expires_in_days": 0 })),
        ("expires_in_days", json!({ "name": "n", "expires_in_days": -1 })),
        ("expires_in_days", json!({ "name": "n", "expires_in_days": 3651 })),
        ("expires_in_days", json!({ "name": "n", "expires_in_days": 1.5 })),
        ("expires_in_days", json!({ "name": "n", "expires_in_days": "1" })),
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
