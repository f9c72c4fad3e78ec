//! `POST /v1/domains`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;
use tempmail_tests::rows::{self, TenantLimit};

use super::create;
use crate::token_api::assert_accepts_only_live_tokens;

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_live_tokens() {
    assert_accepts_only_live_tokens(Method::POST, "/v1/domains").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_dns_records_to_create() {
    let app = App::start().await;
    let made = create(&app, &app.tenant, "ships.test").await.expect(201);
    let token = made["verify_token"].as_str().unwrap();
    let expected = json!([
        {"type": "TXT", "host": "_tempmail.ships.test", "value": format!("tempmail-verify={token}"),
         "priority": null, "ok": false},
        {"type": "MX", "host": "ships.test", "value": "mx.inbox.localhost", "priority": 10, "ok": false},
    ]);
    assert_eq!((&made["dns_records"], &made["verify_status"]), (&expected, &json!("pending")));
    assert_eq!(app.domains(&app.tenant).await, [made]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_invalid_requests_with_a_bare_error_code() {
    let app = App::start().await;
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Domains, 2).await;
    let send = |media_type: &str, body: String| {
        app.request(Method::POST, "/v1/domains").live(&app.tenant.live).body(media_type, body).send()
    };
    for body in ["", "[]", "{}", r#"{"domain": 7}"#] {
        send("application/json", body.into()).await.assert_v1_error(400, "invalid_request");
    }
    send("text/plain", "{}".into()).await.assert_v1_error(415, "unsupported_media_type");
    let large = format!("{{\"domain\": \"{}\"}}", "x".repeat(65 * 1024));
    send("application/json", large).await.assert_v1_error(413, "payload_too_large");
    for name in ["localhost", "co.uk", "ships.inbox.localhost"] {
        create(&app, &app.tenant, name).await.assert_v1_error(400, "invalid_domain");
    }
    create(&app, &app.tenant, "ships.test").await.expect(201);
    create(&app, &app.tenant, "ships.test").await.assert_v1_error(409, "domain_already_exists");
    create(&app, &app.tenant, "boats.test").await.expect(201);
    create(&app, &app.tenant, "more.test").await.assert_v1_error(403, "domain_limit_reached");
}
