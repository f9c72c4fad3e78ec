//! A pending domain is verified, or fails after 72 hours.

use jiff::SignedDuration;
use serde_json::json;
use tempmail_tests::dns::NameServerFault;
use tempmail_tests::{App, TestDns};

use super::{app_and_dns, state};

#[tokio::test(flavor = "multi_thread")]
async fn checks_a_pending_domain_every_5_minutes() {
    let (app, dns) = app_and_dns("ships.test").await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    dns.publish(&[&domain]).await;
    let after = async |time: SignedDuration| {
        app.clock.advance(time);
        app.worker_pass().await;
        app.domain_state(&app.tenant, &domain.id).await
    };
    assert_eq!(after(SignedDuration::from_mins(4)).await, state("pending", ""));
    assert_eq!(after(SignedDuration::from_mins(1)).await, state("verified", ""));
    app.deliver("any@ships.test", "mail flows", "").await;

    // Looked at and found wanting, it is looked at again after as long.
    dns.domain("boats.test", 1).await;
    let boats = app.domain(&app.tenant, "boats.test").await;
    let of_boats = async |minutes: i64| {
        app.clock.advance(SignedDuration::from_mins(minutes));
        app.worker_pass().await;
        app.domain_state(&app.tenant, &boats.id).await.0
    };
    assert_eq!(of_boats(5).await, "pending");
    dns.publish(&[&boats]).await;
    assert_eq!(of_boats(4).await, "pending");
    assert_eq!(of_boats(1).await, "verified");
}

#[tokio::test(flavor = "multi_thread")]
async fn fails_a_pending_domain_after_72_hours() {
    let (app, dns) = app_and_dns("ships.test").await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    dns.set_txt("_tempmail.ships.test", &[&domain.txt]).await;
    app.clock.advance(SignedDuration::from_mins(72 * 60 - 1));
    app.worker_pass().await;
    assert_eq!(app.domain_state(&app.tenant, &domain.id).await, state("pending", ""));
    app.clock.advance(SignedDuration::from_mins(1));
    app.worker_pass().await;
    assert_eq!(app.domain_state(&app.tenant, &domain.id).await, state("failed", "verification_timed_out"));
    let record = app.domain_record(&app.tenant, &domain.id).await;
    assert_eq!((&record["dns_records"][0]["ok"], &record["verified_at"]), (&json!(true), &json!(null)));
}

#[tokio::test(flavor = "multi_thread")]
async fn fails_a_pending_domain_after_72_hours_without_an_answer() {
    let dns = TestDns::start().await;
    let servers = dns.domain("ships.test", 1).await;
    servers[0].set_fault(NameServerFault::Refused);
    let app = App::builder().dns(&dns).start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    app.clock.advance(SignedDuration::from_hours(72));
    app.worker_pass().await;
    assert_eq!(app.domain_state(&app.tenant, &domain.id).await, state("failed", "verification_timed_out"));
}

#[tokio::test(flavor = "multi_thread")]
async fn fails_a_pending_domain_in_a_requested_check_after_the_deadline() {
    let (app, _dns) = app_and_dns("ships.test").await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    app.advance_hours(73);
    let checked = app.check_domain_once_allowed(&app.tenant, &domain.id).await;
    assert_eq!(
        (&checked["verify_status"], &checked["failure_reason"]),
        (&json!("failed"), &json!("verification_timed_out"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_a_failed_domain_only_on_request() {
    let (app, dns) = app_and_dns("ships.test").await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    app.advance_hours(72);
    app.worker_pass().await;
    dns.publish(&[&domain]).await;
    for _ in 0..3 {
        app.advance_hours(24);
        app.worker_pass().await;
    }
    assert_eq!(app.domain_state(&app.tenant, &domain.id).await.0, "failed");
    let checked = app.check_domain_once_allowed(&app.tenant, &domain.id).await;
    assert_eq!((&checked["verify_status"], &checked["failure_reason"]), (&json!("verified"), &json!(null)));
    app.deliver("any@ships.test", "mail flows", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_the_configured_resolver_in_a_closed_network() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let app = App::builder()
        .config(|config| {
            config.dns.mode = tempmail_runtime::config::DnsMode::Recursive;
            config.dns.servers = vec![dns.recursive()];
        })
        .start()
        .await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    dns.publish(&[&domain]).await;
    assert_eq!(app.check_domain_once_allowed(&app.tenant, &domain.id).await["verify_status"], "verified");
}
