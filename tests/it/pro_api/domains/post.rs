//! `POST /pro/api/domains`

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::{App, TestDns};

use crate::pro_api::is_for_pro_alone;

const PATH: &str = "/pro/api/domains";

#[tokio::test(flavor = "multi_thread")]
async fn it_is_for_pro_tokens_alone() {
    is_for_pro_alone(Method::POST, "/pro/api/domains").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_with_the_records_to_set() {
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
async fn a_body_without_a_domain_is_invalid_request() {
    let app = App::start().await;
    let send = |media_type: &str, body: String| {
        app.request(Method::POST, PATH).bearer(&app.tenant.pro).body(media_type, body).send()
    };
    for body in ["", "{", "[]", "{}", r#"{"domain": 7}"#, r#"{"domain": null}"#] {
        send("application/json", body.into()).await.is_api_error(400, "invalid_request");
    }
    let domain = r#"{"domain": "ships.test"}"#;
    send("text/plain", domain.into()).await.is_api_error(415, "unsupported_media_type");
    let large = format!("{{\"domain\": \"{}\"}}", "x".repeat(65 * 1024));
    send("application/json", large).await.is_api_error(413, "payload_too_large");
    assert!(app.domains(&app.tenant).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_nobody_can_bring_is_invalid_domain() {
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
        app.create_domain(&app.tenant, name).await.is_api_error(400, "invalid_domain");
    }
    assert!(app.domains(&app.tenant).await.is_empty());
    // Only whole labels count.
    for name in ["notsystem.example", "xmail.site.test", "a.ships.github.io"] {
        assert_eq!(app.create_domain(&app.tenant, name).await.status, 201, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_a_domain_once_whatever_became_of_it() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    app.create_domain(&app.tenant, "Ships.Test").await.is_api_error(409, "domain_already_exists");
    app.advance_hours(73);
    app.worker_pass().await;
    assert_eq!(app.domain_state(&app.tenant, &domain.id).await.0, "failed");
    app.create_domain(&app.tenant, "ships.test").await.is_api_error(409, "domain_already_exists");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_have_is_no_obstacle() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.domain(&other, "ships.test").await;
    let ours = app.domain(&app.tenant, "ships.test").await;
    assert_ne!(ours.txt, theirs.txt, "each has a record of its own");
    dns.publish(&[&theirs]).await;
    assert_eq!(app.check_domain_once_allowed(&other, &theirs.id).await["verify_status"], "verified");
    let third = app.another_tenant("shipyard").await;
    assert_eq!(app.create_domain(&third, "ships.test").await.expect(201)["verify_status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_counts_what_is_there() {
    let app = App::start().await;
    sqlx::query("UPDATE tenant SET domain_limit = 2").execute(&app.pool).await.unwrap();
    let first = app.domain(&app.tenant, "one.test").await;
    app.domain(&app.tenant, "two.test").await;
    app.create_domain(&app.tenant, "three.test").await.is_api_error(403, "domain_limit_reached");
    app.advance_hours(73);
    app.worker_pass().await;
    app.create_domain(&app.tenant, "three.test").await.is_api_error(403, "domain_limit_reached");
    assert_eq!(app.delete_domain(&app.tenant, &first.id).await.status, 204);
    app.domain(&app.tenant, "three.test").await;
}

/// Two tenants, each with one place left, and a hundred attempts of each at once.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_place_is_given_once() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    sqlx::query("UPDATE tenant SET domain_limit = 1").execute(&app.pool).await.unwrap();
    let attempts = (0..200).map(|number| {
        let tenant = if number % 2 == 0 { &app.tenant } else { &other };
        let app = &app;
        async move {
            loop {
                let answer = app.create_domain(tenant, &format!("d{number}.test")).await;
                if answer.status != 503 {
                    return (tenant.id, answer);
                }
            }
        }
    });
    let answers = join_all(attempts).await;
    for tenant in [&app.tenant, &other] {
        let of_tenant = answers.iter().filter(|(id, _)| *id == tenant.id).map(|(_, answer)| answer);
        let (made, refused): (Vec<_>, Vec<_>) = of_tenant.partition(|answer| answer.status == 201);
        assert_eq!((made.len(), refused.len()), (1, 99));
        refused.iter().for_each(|answer| answer.is_api_error(403, "domain_limit_reached"));
        assert_eq!(app.domains(tenant).await.len(), 1);
    }
}

/// One name, many times at once, and of one tenant: the constraint decides.
#[tokio::test(flavor = "multi_thread")]
async fn one_name_at_once_is_made_once() {
    let app = App::start().await;
    let answers = join_all((0..20).map(|_| app.create_domain(&app.tenant, "ships.test"))).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    answers
        .iter()
        .filter(|answer| answer.status != 201)
        .for_each(|answer| answer.is_api_error(409, "domain_already_exists"));
    let domains: Vec<Value> = app.domains(&app.tenant).await;
    assert_eq!(domains.len(), 1);
}
