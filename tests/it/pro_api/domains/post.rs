//! `POST /pro/api/domains`

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::rows::{self, TenantLimit};
use tempmail_tests::{App, Response, TestDns};

use crate::pro_api::assert_accepts_only_pro_tokens;
use crate::pro_api::{assert_one_created, concurrently};

const PATH: &str = "/pro/api/domains";

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::POST, "/pro/api/domains").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_dns_records_to_create() {
    let app = App::start().await;
    let made = app.create_domain(&app.tenant, "Bücher.Test.").await.expect(201);
    let token = made["verify_token"].as_str().unwrap();
    assert!(token.len() >= 32 && token.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
    let time = |key: &str| made[key].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert_eq!(time("deadline"), time("created_at") + SignedDuration::from_hours(72));
    assert_eq!(
        made,
        json!({
            "id": made["id"],
            "domain": "xn--bcher-kva.test",
            "verify_status": "pending",
            "verify_token": token,
            "dns_records": [
                {"type": "TXT", "host": "_tempmail.xn--bcher-kva.test", "value": format!("tempmail-verify={token}"),
                 "priority": null, "ok": false},
                {"type": "MX", "host": "xn--bcher-kva.test", "value": "mx.inbox.localhost", "priority": 10, "ok": false},
            ],
            "mx_configured": false,
            "created_at": made["created_at"],
            "deadline": made["deadline"],
            "verified_at": null,
            "failure_reason": null,
            "managed_by": "api",
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_body_without_a_domain() {
    let app = App::start().await;
    let send = |media_type: &str, body: String| {
        app.request(Method::POST, PATH).bearer(&app.tenant.pro).body(media_type, body).send()
    };
    for body in ["", "{", "[]", "{}", r#"{"domain": 7}"#, r#"{"domain": null}"#] {
        send("application/json", body.into()).await.assert_api_error(400, "invalid_request");
    }
    let domain = r#"{"domain": "ships.test"}"#;
    send("text/plain", domain.into()).await.assert_api_error(415, "unsupported_media_type");
    let large = format!("{{\"domain\": \"{}\"}}", "x".repeat(65 * 1024));
    send("application/json", large).await.assert_api_error(413, "payload_too_large");
    assert!(app.domains(&app.tenant).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_names_that_cannot_be_custom_domains() {
    let app = App::builder()
        .config(|config| config.http.base_url = "https://mail.site.test:8443".into())
        .start()
        .await;
    app.system_domain("system.example", true).await;
    for name in [
        "",
        "localhost",
        "a b.test",
        "a_b.test",
        "-a.test",
        "192.0.2.1",
        "[192.0.2.1]",
        "2001:db8::1",
        "ada@ships.test",
        // Public suffixes, private ones included.
        "test",
        "co.uk",
        "github.io",
        // A system domain, below and above one, and the same of the installation's own names.
        "inbox.localhost",
        "ships.inbox.localhost",
        "system.example",
        "deep.below.system.example",
        "mx.inbox.localhost",
        "mail.site.test",
        "below.mail.site.test",
        "site.test",
    ] {
        app.create_domain(&app.tenant, name).await.assert_api_error(400, "invalid_domain");
    }
    assert!(app.domains(&app.tenant).await.is_empty());
    // Only whole labels count.
    for name in ["notsystem.example", "xmail.site.test", "a.ships.github.io"] {
        assert_eq!(app.create_domain(&app.tenant, name).await.status, 201, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_domain_that_the_tenant_already_has() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    app.create_domain(&app.tenant, "Ships.Test").await.assert_api_error(409, "domain_already_exists");
    app.advance_hours(73);
    app.worker_pass().await;
    assert_eq!(app.domain_state(&app.tenant, &domain.id).await.0, "failed");
    app.create_domain(&app.tenant, "ships.test").await.assert_api_error(409, "domain_already_exists");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_domain_that_another_tenant_has() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.domain(&other, "ships.test").await;
    let ours = app.domain(&app.tenant, "ships.test").await;
    assert_ne!(ours.txt, theirs.txt, "each tenant has its own record");
    dns.publish(&[&theirs]).await;
    assert_eq!(app.check_domain_once_allowed(&other, &theirs.id).await["verify_status"], "verified");
    let third = app.another_tenant("shipyard").await;
    assert_eq!(app.create_domain(&third, "ships.test").await.expect(201)["verify_status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_domain_limit() {
    let app = App::start().await;
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Domains, 2).await;
    let first = app.domain(&app.tenant, "one.test").await;
    app.domain(&app.tenant, "two.test").await;
    app.create_domain(&app.tenant, "three.test").await.assert_api_error(403, "domain_limit_reached");
    app.advance_hours(73);
    app.worker_pass().await;
    app.create_domain(&app.tenant, "three.test").await.assert_api_error(403, "domain_limit_reached");
    assert_eq!(app.delete_domain(&app.tenant, &first.id).await.status, 204);
    app.domain(&app.tenant, "three.test").await;
}

/// Two tenants with one domain left each.
#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_domain_limit_under_concurrent_requests() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let tenants = [&app.tenant, &other];
    for tenant in tenants {
        rows::set_limit(&app.pool, tenant.id, TenantLimit::Domains, 1).await;
    }
    let answers = concurrently(|number| {
        let request = app.request(Method::POST, PATH).bearer(&tenants[number % 2].pro);
        request.json(&json!({ "domain": format!("d{number}.test") }))
    })
    .await;
    for (index, tenant) in tenants.into_iter().enumerate() {
        let of_tenant: Vec<Response> = answers.iter().skip(index).step_by(2).cloned().collect();
        assert_one_created(&of_tenant, "domain_limit_reached");
        assert_eq!(app.domains(tenant).await.len(), 1);
    }
}

/// The unique constraint decides.
#[tokio::test(flavor = "multi_thread")]
async fn creates_a_domain_once_under_concurrent_requests() {
    let app = App::start().await;
    let answers = join_all((0..20).map(|_| app.create_domain(&app.tenant, "ships.test"))).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    answers
        .iter()
        .filter(|answer| answer.status != 201)
        .for_each(|answer| answer.assert_api_error(409, "domain_already_exists"));
    let domains: Vec<Value> = app.domains(&app.tenant).await;
    assert_eq!(domains.len(), 1);
}
