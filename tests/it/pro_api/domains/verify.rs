//! `POST /pro/api/domains/{id}/verify`

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_tests::dns::NameServerFault;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::{App, TestDns};

#[tokio::test(flavor = "multi_thread")]
async fn verifies_a_domain_with_both_records() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 2).await;
    let app = App::builder().dns(&dns).start().await;
    let made = app.create_domain(&app.tenant, "ships.test").await.expect(201);
    let id = made["id"].as_str().unwrap();
    dns.set_verified("ships.test", made["verify_token"].as_str().unwrap(), "mx.inbox.localhost").await;
    let checked = app.check_domain(&app.tenant, id).await.expect(200);
    let mut expected = made.clone();
    expected["verify_status"] = json!("verified");
    expected["dns_records"][0]["ok"] = json!(true);
    expected["dns_records"][1]["ok"] = json!(true);
    expected["mx_configured"] = json!(true);
    expected["verified_at"] = checked["verified_at"].clone();
    let record = expected.clone();
    expected["txt_record"] = json!(true);
    expected["mx_record"] = json!(true);
    assert_eq!(checked, expected);
    let verified_at: Timestamp = checked["verified_at"].as_str().unwrap().parse().unwrap();
    assert!(verified_at >= made["created_at"].as_str().unwrap().parse().unwrap());
    assert_eq!(app.domains(&app.tenant).await, [record]);

    app.deliver("any@ships.test", "mail flows", "").await;
    assert_eq!(app.emails("any@ships.test").await[0]["subject"], "mail flows");
    app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_the_record_that_does_not_match() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    let found = async || {
        let checked = app.check_domain_once_allowed(&app.tenant, &domain.id).await;
        assert_eq!(checked["verify_status"], "pending");
        for (key, record) in [("txt_record", 0), ("mx_record", 1)] {
            assert_eq!(checked[key], checked["dns_records"][record]["ok"], "{checked}");
        }
        assert_eq!(checked["mx_record"], checked["mx_configured"]);
        (checked["txt_record"].as_bool().unwrap(), checked["mx_record"].as_bool().unwrap())
    };
    assert_eq!(found().await, (false, false));
    dns.set_txt("_tempmail.ships.test", &[&domain.txt]).await;
    assert_eq!(found().await, (true, false));
    dns.set_mx("ships.test", &[(10, "mx.elsewhere.test")]).await;
    assert_eq!(found().await, (true, false));
    dns.publish(&[&domain]).await;
    dns.set_txt("_tempmail.ships.test", &["tempmail-verify=another"]).await;
    assert_eq!(found().await, (false, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_nothing_when_dns_does_not_answer() {
    let dns = TestDns::start().await;
    let servers = dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    let seen = |checked: &serde_json::Value| {
        let of = |key: &str| checked[key].clone();
        (of("verify_status"), of("txt_record"), of("mx_record"), of("mx_configured"))
    };
    servers[0].set_fault(NameServerFault::ServFail);
    let checked = app.check_domain_once_allowed(&app.tenant, &domain.id).await;
    assert_eq!(seen(&checked), (json!("pending"), json!(false), json!(false), json!(false)));
    servers[0].clear_fault();
    dns.publish(&[&domain]).await;
    app.check_domain_once_allowed(&app.tenant, &domain.id).await;
    servers[0].set_fault(NameServerFault::ServFail);
    let checked = app.check_domain_once_allowed(&app.tenant, &domain.id).await;
    assert_eq!(seen(&checked), (json!("verified"), json!(false), json!(false), json!(true)));
    assert_eq!(checked["dns_records"][0]["ok"], true, "as it was when the servers last answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_a_domain_at_most_once_in_10_s() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    app.check_domain(&app.tenant, &domain.id).await.expect(200);
    let refused = app.check_domain(&app.tenant, &domain.id).await;
    refused.assert_api_error(429, "rate_limit_exceeded");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=10).contains(&wait), "{wait}");
    // Another domain has its own limit.
    let other = app.domain(&app.tenant, "boats.test").await;
    app.check_domain(&app.tenant, &other.id).await.expect(200);
    app.clock.advance(SignedDuration::from_secs(10));
    app.check_domain(&app.tenant, &domain.id).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_once_under_concurrent_requests() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    let began = app.clock.now();
    let answers = join_all((0..20).map(|_| app.check_domain(&app.tenant, &domain.id))).await;
    // One in 10 s, and a busy machine may need longer for all requests.
    let most = 1 + app.clock.now().duration_since(began).as_secs() / 10;
    let (checked, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    let count = i64::try_from(checked.len()).expect("at most 20");
    assert!((1..=most).contains(&count), "{count} checks, at most {most}");
    for answer in refused {
        answer.assert_api_error(429, "rate_limit_exceeded");
        assert!(!answer.header("retry-after").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_a_domain_managed_by_kubernetes() {
    let app = App::start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Domain, domain.id.parse().unwrap()).await;
    let checked = app.check_domain(&app.tenant, &domain.id).await.expect(200);
    assert_eq!(checked["managed_by"], "kubernetes");
}

/// Only a failed domain can overlap a newer system domain.
#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_name_that_overlaps_a_newer_system_domain() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    dns.publish(&[&domain]).await;
    app.end_verification(domain.id.parse().unwrap()).await;
    app.system_domain("mail.ships.test", true).await;
    app.check_domain(&app.tenant, &domain.id).await.assert_api_error(400, "invalid_domain");
    assert_eq!(app.domain_state(&app.tenant, &domain.id).await.0, "failed");
}
