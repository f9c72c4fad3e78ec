//! An operator at rest: objects that are reconciled again without a change are not written.

use tempmail_tests::kubernetes::{ApiProxy, Installation, OperatorProcess, Team, assert_conditions};
use tempmail_tests::rows::SYSTEM_DOMAIN;
use tempmail_tests::wait::eventually;

/// Objects of the test.
const OBJECTS: f64 = 4.0;

#[tokio::test(flavor = "multi_thread")]
async fn reconciles_settled_objects_without_writing_them() {
    let installation = Installation::without_operator().await;
    let proxy = ApiProxy::start(&installation.cluster).await;
    let operator = OperatorProcess::start_leader_behind(&proxy, &installation).await;
    let team = Team::new(&installation.cluster).await;
    settle_domains(&installation, &team).await;

    // The tenant's usage is counted at a start, and every ten minutes.
    restart(&operator).await;
    team.wait_until(&team.tenant_object(), "its usage", |shown| {
        shown["status"]["usage"]["customDomains"] == 2
    })
    .await;

    let (requests, queries) = (proxy.request_count(), installation.dns.seed_server().queries().len());
    restart(&operator).await;
    eventually("the records are checked again", async || {
        (installation.dns.seed_server().queries().len() > queries + 3).then_some(())
    })
    .await;
    let written: Vec<_> = proxy
        .requests_since(requests)
        .into_iter()
        .filter(|request| request.is_write() && request.resource != "leases")
        .collect();
    assert!(written.is_empty(), "{written:#?}");
}

/// Declares a verified, a pending and a refused domain, and waits until each has its final conditions.
async fn settle_domains(installation: &Installation<tempmail_tests::Cluster>, team: &Team) {
    team.apply("CustomDomain", "pending", &format!("domain: {}", team.domain("pending"))).await;
    // For want of a tenant it would stall after a minute, which is written.
    team.apply("CustomDomain", "refused", &format!("domain: mail.{SYSTEM_DOMAIN}")).await;
    installation.verified_domain(team, "verified", "verified").await;
    assert_conditions(&team.get("customdomain/verified").await, &[("Ready", "True")]);
    team.wait_for_reason("customdomain/pending", "Verified", "DnsLookupFailed").await;
    team.wait_for_condition("customdomain/refused", "Accepted=False").await;
}

/// Restarts the operator, and returns when it has compared the statuses of all objects.
async fn restart(operator: &OperatorProcess) {
    operator.terminate().await;
    operator.restart().await;
    operator.wait_until_leader().await;
    eventually("all statuses are compared", async || {
        (operator.metric("tempmail_operator_status_patches_total").await >= OBJECTS).then_some(())
    })
    .await;
}
