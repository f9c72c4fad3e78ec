//! `/v1/domains`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::rows::{ManagedKind, TenantLimit};
use tempmail_tests::{App, Response, Tenant, rows};

/// Tries to add a domain.
async fn create(app: &App, tenant: &Tenant, name: &str) -> Response {
    let request = app.request(Method::POST, "/v1/domains").live(&tenant.live);
    request.json(&json!({ "domain": name })).send().await
}

/// The tenant's domains.
async fn list(app: &App) -> Vec<Value> {
    app.get("/v1/domains").await.expect(200)["domains"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_the_same_domains_as_the_pro_api() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    create(&app, &other, "theirs.test").await.expect(201);
    let first = create(&app, &app.tenant, "first.test").await.expect(201);
    app.clock.advance(jiff::SignedDuration::from_secs(1));
    let second = app.create_domain(&app.tenant, "second.test").await.expect(201);
    assert_eq!(list(&app).await, [second.clone(), first.clone()], "newest first");
    assert_eq!(app.domains(&app.tenant).await, [second, first]);
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
    for name in ["localhost", "co.uk", "ships.inbox.localhost"] {
        create(&app, &app.tenant, name).await.assert_v1_error(400, "invalid_domain");
    }
    create(&app, &app.tenant, "ships.test").await.expect(201);
    create(&app, &app.tenant, "ships.test").await.assert_v1_error(409, "domain_already_exists");
    create(&app, &app.tenant, "boats.test").await.expect(201);
    create(&app, &app.tenant, "more.test").await.assert_v1_error(403, "domain_limit_reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_a_domain_of_the_tenant_once() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = create(&app, &other, "theirs.test").await.expect(201)["id"].as_str().unwrap().to_owned();
    let ours = create(&app, &app.tenant, "ships.test").await.expect(201)["id"].as_str().unwrap().to_owned();
    assert_eq!(app.delete(&format!("/v1/domains/{ours}")).await.status, 204);
    assert!(list(&app).await.is_empty());
    for id in [ours.as_str(), theirs.as_str(), "none", "00000000-0000-7000-8000-00000000ffff"] {
        app.delete(&format!("/v1/domains/{id}")).await.assert_v1_error(404, "not_found");
    }
    assert_eq!(app.domains(&other).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_deletion_of_a_domain_managed_by_kubernetes() {
    let app = App::start().await;
    let id = app.domain(&app.tenant, "ships.test").await.id;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Domain, id.parse().unwrap()).await;
    app.delete(&format!("/v1/domains/{id}")).await.assert_v1_error(409, "managed_by_kubernetes");
    assert_eq!(list(&app).await.len(), 1);
}
