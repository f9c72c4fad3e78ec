//! `POST /pro/api/webhooks`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::rows::{self, TenantLimit};
use tempmail_tests::{App, Response};

use crate::pro_api::{assert_accepts_only_pro_tokens, assert_rejects_bad_bodies, assert_time, id_of, pro};

const PATH: &str = "/pro/api/webhooks";
const URL: &str = "https://hooks.example/in";

async fn create(app: &App, body: Value) -> Response {
    pro(app, Method::POST, PATH).json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::POST, PATH).await;
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
async fn stores_the_secret_encrypted() {
    let app = App::start().await;
    let created = create(&app, json!({ "url": URL, "events": ["email.received"] })).await.expect(201);
    let secret = created["secret"].as_str().unwrap();
    let stored: Vec<u8> = sqlx::query_scalar("SELECT secret FROM webhook WHERE id = $1")
        .bind(id_of(&created))
        .fetch_one(&app.pool)
        .await
        .unwrap();
    for clear in [secret.as_bytes(), b"whsec_"] {
        assert!(!stored.windows(clear.len()).any(|bytes| bytes == clear));
    }
    // Plus key id, nonce and tag.
    assert_eq!(stored.len(), 4 + 12 + secret.len() + 16);
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
async fn rejects_a_malformed_body_and_names_the_field() {
    let app = App::start().await;
    assert_rejects_bad_bodies(&app, Method::POST, PATH).await;
    for (field, body) in [
        ("url", json!({ "events": ["email.received"] })),
        ("url", json!({ "url": null, "events": ["email.received"] })),
        ("url", json!({ "url": 1, "events": ["email.received"] })),
        ("events", json!({ "url": URL })),
    ] {
        let answer = create(&app, body).await;
        answer.assert_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains(field), "{}", answer.text());
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
