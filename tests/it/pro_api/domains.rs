//! `/pro/api/domains`

mod verify;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_tests::rows::{self, ManagedKind, TenantLimit};
use tempmail_tests::{App, Response, TestDns, send_mail, smtp};

use super::{assert_one_created, concurrently};

#[tokio::test(flavor = "multi_thread")]
async fn lists_domains_of_the_tenant_newest_first() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.domain(&other, "theirs.test").await;
    assert_eq!(app.domains(&app.tenant).await, Vec::<Value>::new());
    let first = app.create_domain(&app.tenant, "first.test").await.expect(201);
    app.clock.advance(SignedDuration::from_secs(1));
    let second = app.create_domain(&app.tenant, "second.test").await.expect(201);
    let answer = app.request(Method::GET, "/pro/api/domains").bearer(&app.tenant.pro).send().await;
    assert_eq!(answer.expect(200), json!({ "domains": [second, first] }), "newest first");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_all_up_to_1000_then_in_pages() {
    let app = App::start().await;
    // Names that are no longer checked.
    sqlx::query(
        "INSERT INTO domain (id, name, tenant, serves, verify_status, failure_reason, verify_token, created_at, deadline)
         SELECT gen_random_uuid(), 'd' || n || '.test', $1, false, 'failed', 'verification_timed_out', 'x',
                $2::timestamptz + n * interval '1 s', $2
         FROM generate_series(0, 1000) n",
    )
    .bind(app.tenant.id)
    .bind(app.clock.now().to_sqlx())
    .execute(&app.pool)
    .await
    .unwrap();
    let page = async |query: &str| {
        let path = format!("/pro/api/domains{query}");
        app.request(Method::GET, &path).bearer(&app.tenant.pro).send().await
    };
    let names = |answer: Value| -> Vec<String> {
        let domains = answer["domains"].as_array().unwrap();
        domains.iter().map(|domain| domain["domain"].as_str().unwrap().to_owned()).collect()
    };
    let first = names(page("").await.expect(200));
    assert_eq!((first.len(), first[0].as_str(), first[999].as_str()), (1000, "d1000.test", "d1.test"));
    assert_eq!(names(page("?page=2").await.expect(200)), ["d0.test"]);
    assert!(names(page("?page=3").await.expect(200)).is_empty());
    assert_eq!(app.get("/v1/domains").await.expect(200)["domains"].as_array().unwrap().len(), 1000);
}

const PATH: &str = "/pro/api/domains";

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

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_a_second_deletion() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    assert_eq!(app.delete_domain(&app.tenant, &domain.id).await.status, 204);
    assert!(app.domains(&app.tenant).await.is_empty());
    app.delete_domain(&app.tenant, &domain.id).await.assert_api_error(404, "not_found");
    app.check_domain(&app.tenant, &domain.id).await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_deletion_of_a_domain_managed_by_kubernetes() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Domain, domain.id.parse().unwrap()).await;
    app.delete_domain(&app.tenant, &domain.id).await.assert_api_error(409, "managed_by_kubernetes");
    let record = app.domain_record(&app.tenant, &domain.id).await;
    assert_eq!(record["managed_by"], "kubernetes");
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_mailboxes_and_mail_and_rejects_later_mail() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.test").await.to_string();
    app.custom_domain(&app.tenant, "boats.test").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.deliver("box@ships.test", "to the mailbox", "").await;
    app.deliver("any@ships.test", "to the domain", "").await;
    app.deliver("any@boats.test", "to another domain", "").await;
    let id = app.emails("any@ships.test").await[0]["id"].as_str().unwrap().to_owned();

    assert_eq!(app.delete_domain(&app.tenant, &domain).await.status, 204);
    app.get("/v1/inbox/any@ships.test").await.assert_v1_error(404, "not_found");
    app.get("/v1/inbox/box@ships.test").await.assert_v1_error(404, "not_found");
    app.get(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
    app.get_mailbox(&mailbox, "/api/messages").await.assert_api_error(401, "invalid_token");
    let sign_in = app.sign_in(&mailbox.address, &mailbox.password).await;
    sign_in.assert_api_error(401, "invalid_credentials");
    let refused = app.create_mailbox(Some(&app.tenant.pro), "new@ships.test", "pass123").await;
    refused.assert_api_error(400, "invalid_address");
    let message = smtp::message("a@client.example", "after", "");
    let reply = send_mail(app.smtp(), "a@client.example", "new@ships.test", &message).await;
    assert_eq!(reply.status(), "550 5.7.1");
    let reply = send_mail(app.smtp(), "a@client.example", "any@ships.test", &message).await;
    assert!(!reply.is_positive(), "a cached RCPT decision stores nothing: {reply:?}");

    // Two passes: the rows go after what depends on them.
    app.worker_pass().await;
    app.worker_pass().await;
    let left: Vec<String> =
        sqlx::query_scalar("SELECT subject FROM message").fetch_all(&app.pool).await.unwrap();
    assert_eq!(left, ["to another domain"]);
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 1);
    assert_eq!(app.count("SELECT count(*) FROM mailbox").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM purge").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM domain WHERE tenant IS NOT NULL").await, 1);
    let kept = app.count("SELECT sum(stored_bytes)::bigint + count(*) * message_row_bytes() FROM raw").await;
    assert_eq!(
        app.count("SELECT sum(bytes)::bigint FROM message_partition").await,
        kept,
        "its usage is released"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn recreates_a_domain_with_its_verify_token_and_without_its_mail() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).start().await;
    let first = app.domain(&app.tenant, "ships.test").await;
    dns.publish(&[&first]).await;
    assert_eq!(app.check_domain_once_allowed(&app.tenant, &first.id).await["verify_status"], "verified");
    app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.deliver("any@ships.test", "before", "").await;
    app.deliver("box@ships.test", "before", "").await;
    assert_eq!(app.delete_domain(&app.tenant, &first.id).await.status, 204);

    let second = app.domain(&app.tenant, "ships.test").await;
    assert_ne!(second.id, first.id);
    assert_eq!(second.txt, first.txt, "the existing record stays valid");
    assert_eq!(app.check_domain_once_allowed(&app.tenant, &second.id).await["verify_status"], "verified");
    app.assert_inbox_is_empty("any@ships.test").await;
    app.assert_inbox_is_empty("box@ships.test").await;
    app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.assert_inbox_is_empty("box@ships.test").await;
}
