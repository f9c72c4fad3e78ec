//! Of tenants that prove one name at once, one gets it.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use jiff::SignedDuration;
use serde_json::Value;
use tempmail_model::clock::Clock as _;
use tempmail_tests::{App, Tenant, TestDns};
use tokio::join;

use super::app_and_dns;

/// Ids of two tenants' claims on one name, both of whose records are there.
async fn two_claims(app: &App, dns: &TestDns, other: &Tenant) -> [String; 2] {
    let (ours, theirs) = (app.domain(&app.tenant, "ships.test").await, app.domain(other, "ships.test").await);
    dns.publish(&[&ours, &theirs]).await;
    [ours.id, theirs.id]
}

async fn states(app: &App, other: &Tenant, claims: &[String; 2]) -> [String; 2] {
    let ours = app.domain_state(&app.tenant, &claims[0]).await;
    let theirs = app.domain_state(other, &claims[1]).await;
    let mut both = [ours.0 + &ours.1, theirs.0 + &theirs.1];
    both.sort();
    both
}

#[tokio::test(flavor = "multi_thread")]
async fn verifies_one_domain_in_200_concurrent_checks_of_two_tenants() {
    let (app, dns) = app_and_dns("ships.test").await;
    let other = app.another_tenant("lighthouse").await;
    let claims = two_claims(&app, &dns, &other).await;
    let began = app.clock.now();
    let answers = join_all((0..200).map(|number| {
        let (tenant, id) = if number % 2 == 0 { (&app.tenant, &claims[0]) } else { (&other, &claims[1]) };
        app.check_domain(tenant, id)
    }))
    .await;
    // Each tenant has one in 10 s, and a busy machine may need longer for all requests.
    let most = 1 + app.clock.now().duration_since(began).as_secs() / 10;
    let checked: Vec<Value> =
        answers.iter().filter(|answer| answer.status == 200).map(|answer| answer.json()).collect();
    for id in &claims {
        let checks = checked.iter().filter(|answer| answer["id"] == *id);
        let checks = i64::try_from(checks.count()).expect("at most 200");
        assert!((1..=most).contains(&checks), "{checks} checks of {id}, at most {most}");
    }
    let verified = checked.iter().filter(|answer| answer["verify_status"] == "verified");
    let verified: BTreeSet<String> = verified.map(|answer| answer["id"].to_string()).collect();
    assert_eq!(verified.len(), 1, "{checked:#?}");
    assert_eq!(states(&app, &other, &claims).await, ["failedclaimed_by_another", "verified"]);
    assert_eq!(app.count("SELECT count(*) FROM domain WHERE name = 'ships.test' AND serves").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn verifies_one_domain_in_concurrent_scheduled_and_requested_checks() {
    let (app, dns) = app_and_dns("ships.test").await;
    let other = app.another_tenant("lighthouse").await;
    let claims = two_claims(&app, &dns, &other).await;
    app.clock.advance(SignedDuration::from_mins(5));
    let (_, _, ours, theirs) = join!(
        app.worker_pass(),
        app.worker_pass(),
        app.check_domain(&app.tenant, &claims[0]),
        app.check_domain(&other, &claims[1])
    );
    ours.expect(200);
    theirs.expect(200);
    assert_eq!(states(&app, &other, &claims).await, ["failedclaimed_by_another", "verified"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_a_domain_for_one_process() {
    let dns = TestDns::start().await;
    let server = dns.domain("ships.test", 1).await.remove(0);
    let app = App::builder().dns(&dns).start().await;
    app.domain(&app.tenant, "ships.test").await;
    app.clock.advance(SignedDuration::from_mins(5));
    app.worker_pass().await;
    // Each check begins there: it finds the server that is queried again while it holds its replies.
    let of_seed = || dns.seed_server().queries().len();
    assert!(of_seed() > 0);
    app.clock.advance(SignedDuration::from_mins(5));
    let hold = server.hold_replies();
    let (_, ()) = join!(app.worker_pass(), async {
        hold.query_received().await;
        let before = of_seed();
        // The other loop finds nothing to do, and ends while the first still waits.
        app.worker_pass().await;
        assert_eq!(of_seed(), before, "the other loop checks it, too");
        hold.release();
    });
}

/// Removal and verification at once: never a removed domain that serves.
#[tokio::test(flavor = "multi_thread")]
async fn does_not_serve_a_domain_that_is_deleted_during_its_check() {
    let dns = TestDns::start().await;
    let server = dns.domain("ships.test", 1).await.remove(0);
    let app = App::builder().dns(&dns).start().await;
    let domain = app.domain(&app.tenant, "ships.test").await;
    dns.publish(&[&domain]).await;
    let hold = server.hold_replies();
    let (checked, ()) = join!(app.check_domain(&app.tenant, &domain.id), async {
        hold.query_received().await;
        assert_eq!(app.delete_domain(&app.tenant, &domain.id).await.status, 204);
        hold.release();
    });
    checked.assert_api_error(404, "not_found");
    assert_eq!(app.count("SELECT count(*) FROM domain WHERE name = 'ships.test' AND serves").await, 0);
}
