//! `/pro/api/webhooks`

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::{id_time, new_id};
use tempmail_tests::rows::{self, ManagedKind, TenantLimit};
use tempmail_tests::{App, Response};
use uuid::Uuid;

use super::{assert_time, id_of, pro};

/// A new webhook, as its creation returned it.
pub(super) async fn webhook(app: &App, pro: &str) -> Value {
    let body = json!({ "url": "https://hooks.example/in", "events": ["email.received"] });
    app.request(Method::POST, "/pro/api/webhooks").bearer(pro).json(&body).send().await.expect(201)
}

const PATH: &str = "/pro/api/webhooks";

#[tokio::test(flavor = "multi_thread")]
async fn lists_webhooks_with_their_status_and_without_secrets() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    webhook(&app, &other.pro).await;
    assert_eq!(pro(&app, Method::GET, PATH).send().await.expect(200), json!({ "webhooks": [] }));
    let created = webhook(&app, &app.tenant.pro).await;
    let mut expected = json!({
        "id": created["id"],
        "url": "https://hooks.example/in",
        "events": ["email.received"],
        "status": "active",
        "failure_count": 0,
        "last_triggered_at": null,
        "created_at": created["created_at"],
    });
    let listed = pro(&app, Method::GET, PATH).send().await.expect(200);
    assert_eq!(listed, json!({ "webhooks": [expected] }));

    let now = app.clock.now();
    sqlx::query(
        "UPDATE webhook SET status = 'disabled', failure_count = 10, last_triggered_at = $2 WHERE id = $1",
    )
    .bind(id_of(&created))
    .bind(now.to_sqlx())
    .execute(&app.pool)
    .await
    .unwrap();
    expected["status"] = json!("disabled");
    expected["failure_count"] = json!(10);
    expected["last_triggered_at"] = json!(format!("{now:.3}"));
    assert_time(&expected["last_triggered_at"]);
    let listed = pro(&app, Method::GET, PATH).send().await.expect(200);
    assert_eq!(listed, json!({ "webhooks": [expected] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_all_newest_first() {
    let app = App::start().await;
    // The most that an administrator may allow is one page.
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Webhooks, 32).await;
    let mut ids = Vec::new();
    for _ in 0..32 {
        ids.insert(0, webhook(&app, &app.tenant.pro).await["id"].clone());
        app.clock.advance(SignedDuration::from_secs(1));
    }
    let listed = pro(&app, Method::GET, PATH).send().await.expect(200);
    let listed: Vec<_> = listed["webhooks"].as_array().unwrap().iter().map(|w| w["id"].clone()).collect();
    assert_eq!(listed, ids);
    let second = pro(&app, Method::GET, &format!("{PATH}?page=2")).send().await.expect(200);
    assert_eq!(second, json!({ "webhooks": [] }));
}

const URL: &str = "https://hooks.example/in";

async fn create(app: &App, body: Value) -> Response {
    pro(app, Method::POST, PATH).json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_an_active_webhook_and_returns_its_secret_once() {
    let app = App::start().await;
    let body = json!({ "url": URL, "events": ["email.received", "email.received"], "colour": "red" });
    let created = create(&app, body).await.expect(201);
    assert_time(&created["created_at"]);
    let secret = created["secret"].as_str().unwrap();
    let expected = json!({
        "id": id_of(&created),
        "url": URL,
        "events": ["email.received"],
        "secret": secret,
        "status": "active",
        "created_at": created["created_at"],
    });
    assert_eq!(created, expected);
    let random = secret.strip_prefix("whsec_").unwrap();
    assert!(random.len() == 44 && random.ends_with('='), "Base64 of 32 bytes");
    let listed = pro(&app, Method::GET, PATH).send().await;
    assert!(!listed.text().contains("whsec_") && !listed.text().contains(random));
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_https_urls_with_a_public_host_name() {
    let app = App::start().await;
    let long = format!("https://hooks.example/{}", "x".repeat(2048 - 21));
    for url in [
        "",
        "hooks.example",
        "http://hooks.example/",
        "ftp://hooks.example/",
        "https://",
        "https:///path",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://0/",
        "https://127.0.0.1./",
        "https://%31%32%37.0.0.1/",
        "https://\u{ff11}\u{ff12}\u{ff17}.0.0.1/",
        "https://\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}/",
        "https://127\u{3002}0\u{3002}0\u{3002}1/",
        "https://[::1]:8443/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[fe80::1%25eth0]/",
        "https://user@hooks.example/",
        "https://user:secret@hooks.example/",
        "https://:@hooks.example/",
        "https://hooks.example\\@evil.example/",
        "https://hooks.example/ x",
        "https://hooks.example/\u{0}",
        "https://hooks.example:70000/",
        "https://hooks.example/#fragment",
        // Nothing is ever sent to these, since no network is allowed.
        "https://receiver/",
        "https://localhost/",
        "https://a.localhost:8443/",
        "https://printer.local/",
        "https://vault.internal/",
        "https://router.home.arpa/",
        "https://api.ns.svc.cluster.local/",
        "https://hooks.example:80/",
        "https://hooks.example:9443/",
        &long,
    ] {
        let answer = create(&app, json!({ "url": url, "events": ["email.received"] })).await;
        assert_eq!(answer.status, 400, "{url:?}: {}", answer.text());
        answer.assert_api_error(400, "invalid_url");
    }
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Webhooks, 10).await;
    for url in ["https://hooks.example:8443/x", "HTTPS://Hooks.Example?a=b", &long[..2048]] {
        let created = create(&app, json!({ "url": url, "events": ["email.received"] })).await.expect(201);
        assert_eq!(created["url"], url, "unchanged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn says_what_to_change_in_a_url_that_is_never_sent_to() {
    let app = App::start().await;
    for (url, advice) in [
        ("https://receiver/", "public host name"),
        ("https://localhost/", "public host name"),
        ("https://hooks.example:9443/", "port 443 or 8443"),
        ("https://10.0.0.1/", "not an IP address"),
    ] {
        let answer = create(&app, json!({ "url": url, "events": ["email.received"] })).await;
        answer.assert_api_error(400, "invalid_url");
        assert!(answer.json()["message"].as_str().unwrap().contains(advice), "{url}: {}", answer.text());
    }
}

/// Whether the address is in one of them is judged at each delivery.
#[tokio::test(flavor = "multi_thread")]
async fn accepts_any_name_and_port_where_networks_are_allowed() {
    let app = App::builder().receivers().start().await;
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Webhooks, 10).await;
    for url in
        ["https://localhost:9443/x", "https://receiver:1", "https://api.ns.svc/", "https://hooks.example:80/"]
    {
        let created = create(&app, json!({ "url": url, "events": ["email.received"] })).await.expect(201);
        assert_eq!(created["url"], url, "unchanged");
    }
    let address = create(&app, json!({ "url": "https://127.0.0.1/", "events": ["email.received"] })).await;
    address.assert_api_error(400, "invalid_url");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_email_received_as_event() {
    let app = App::start().await;
    for events in [
        json!([]),
        json!(["email.deleted"]),
        json!(["email.received", "email.deleted"]),
        json!(["Email.Received"]),
        json!([null]),
        json!([1]),
        json!("email.received"),
        json!({ "email.received": true }),
        json!(null),
    ] {
        let answer = create(&app, json!({ "url": URL, "events": events })).await;
        assert_eq!(answer.status, 400, "{events}: {}", answer.text());
        answer.assert_api_error(400, "invalid_events");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_body_url_events_and_limit_in_this_order() {
    let app = App::start().await;
    assert_eq!(create(&app, json!({ "url": URL, "events": ["email.received"] })).await.status, 201);
    let answer = create(&app, json!({ "url": "http://hooks.example/" })).await;
    answer.assert_api_error(400, "invalid_request");
    let answer = create(&app, json!({ "url": "http://hooks.example/", "events": [] })).await;
    answer.assert_api_error(400, "invalid_url");
    let answer = create(&app, json!({ "url": URL, "events": [] })).await;
    answer.assert_api_error(400, "invalid_events");
    let answer = create(&app, json!({ "url": URL, "events": ["email.received"] })).await;
    answer.assert_api_error(403, "webhook_limit_reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_a_disabled_webhook_towards_the_limit() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let body = json!({ "url": URL, "events": ["email.received"] });
    let created = create(&app, body.clone()).await.expect(201);
    sqlx::query("UPDATE webhook SET status = 'disabled'").execute(&app.pool).await.unwrap();
    create(&app, body.clone()).await.assert_api_error(403, "webhook_limit_reached");
    let theirs = app.request(Method::POST, PATH).bearer(&other.pro).json(&body).send().await;
    assert_eq!(theirs.status, 201, "another tenant has a limit of its own");
    let path = format!("{PATH}/{}", id_of(&created));
    assert_eq!(pro(&app, Method::DELETE, &path).send().await.status, 204);
    let again = create(&app, body).await.expect(201);
    assert_eq!(again["status"], "active");
    assert_ne!(again["id"], created["id"]);
}

async fn delete(app: &App, id: impl std::fmt::Display) -> Response {
    pro(app, Method::DELETE, &format!("/pro/api/webhooks/{id}")).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_a_webhook_and_its_deliveries() {
    let app = App::start().await;
    let id = id_of(&webhook(&app, &app.tenant.pro).await);
    attempt(&app, id, 200, None, 1).await;
    let answer = delete(&app, id).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let listed = pro(&app, Method::GET, "/pro/api/webhooks").send().await.expect(200);
    assert_eq!(listed, json!({ "webhooks": [] }));
    delete(&app, id).await.assert_api_error(404, "not_found");
    let path = format!("/pro/api/webhooks/{id}/deliveries");
    pro(&app, Method::GET, &path).send().await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_deletion_of_a_webhook_managed_by_kubernetes() {
    let app = App::start().await;
    let id = id_of(&webhook(&app, &app.tenant.pro).await);
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Webhook, id).await;
    delete(&app, id).await.assert_api_error(409, "managed_by_kubernetes");
    assert_eq!(app.count("SELECT count(*) FROM webhook").await, 1);
}

async fn rotate(app: &App, id: impl std::fmt::Display) -> Response {
    pro(app, Method::POST, &format!("/pro/api/webhooks/{id}/rotate")).send().await
}

async fn stored(app: &App, id: Uuid) -> Vec<u8> {
    let secret = sqlx::query_scalar("SELECT secret FROM webhook WHERE id = $1").bind(id);
    secret.fetch_one(&app.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn replaces_the_secret() {
    let app = App::start().await;
    let created = webhook(&app, &app.tenant.pro).await;
    let id = id_of(&created);
    let before = stored(&app, id).await;
    let rotated = rotate(&app, id).await.expect(200);
    let secret = rotated["secret"].as_str().unwrap();
    assert_eq!(rotated, json!({ "id": id, "secret": secret }));
    assert!(secret.starts_with("whsec_") && secret.len() == "whsec_".len() + 44);
    assert_ne!(created["secret"], secret);
    let after = stored(&app, id).await;
    assert_ne!(before, after);
    assert!(!after.windows(6).any(|octets| octets == b"whsec_"), "it is sealed");
    assert_ne!(rotate(&app, id).await.expect(200)["secret"], secret);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_rotation_of_a_webhook_managed_by_kubernetes() {
    let app = App::start().await;
    let id = id_of(&webhook(&app, &app.tenant.pro).await);
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Webhook, id).await;
    let before = stored(&app, id).await;
    rotate(&app, id).await.assert_api_error(409, "managed_by_kubernetes");
    assert_eq!(stored(&app, id).await, before);
}

async fn list_attempts(app: &App, id: impl std::fmt::Display, query: &str) -> Response {
    pro(app, Method::GET, &format!("/pro/api/webhooks/{id}/deliveries{query}")).send().await
}

/// Records an attempt as the worker does, at the time of the clock.
pub(in super::webhooks) async fn attempt(
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
async fn lists_attempts_newest_first_with_the_documented_fields() {
    let app = App::start().await;
    let webhook = id_of(&webhook(&app, &app.tenant.pro).await);
    let other = app.another_tenant("lighthouse").await;
    attempt(&app, id_of(&self::webhook(&app, &other.pro).await), 200, None, 1).await;
    assert_eq!(list_attempts(&app, webhook, "").await.expect(200), json!({ "deliveries": [] }));
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
    assert_eq!(list_attempts(&app, webhook, "").await.expect(200), json!({ "deliveries": expected }));
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
        let listed = list_attempts(&app, webhook, query).await.expect(200);
        let attempts: Vec<i64> =
            listed["deliveries"].as_array().unwrap().iter().map(|d| d["attempt"].as_i64().unwrap()).collect();
        assert_eq!(attempts, (0..length).map(|i| 110 - i).collect::<Vec<i64>>(), "{query}");
    }
}
