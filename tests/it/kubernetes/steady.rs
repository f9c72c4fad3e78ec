//! What is as it should be is not written again.

use tempmail_tests::kubernetes::{ApiProxy, OperatorProcess, Team, World, condition};
use tempmail_tests::wait::eventually;

/// Objects of the test.
const OBJECTS: f64 = 4.0;

#[tokio::test(flavor = "multi_thread")]
async fn what_has_settled_is_looked_at_again_and_not_written() {
    let world = World::without_operator().await;
    let proxy = ApiProxy::start(&world.cluster).await;
    let operator = OperatorProcess::start(&world.app, &proxy.kubeconfig()).await;
    operator.comes_to_lead().await;
    let team = Team::with(&world.cluster, "").await;
    for label in ["verified", "pending"] {
        let spec = format!("domain: {}", team.domain(label));
        team.apply("CustomDomain", label, &spec).await.expect("it is taken");
    }
    let refused = "domain: com.localhost, tenantRef: {name: nobody}";
    team.apply("CustomDomain", "refused", refused).await.expect("it is taken");
    let shown = team.wait("customdomain/verified", "Accepted").await;
    let records = &shown["status"]["verification"]["records"];
    let token = records[0]["value"].as_str().and_then(|value| value.strip_prefix("tempmail-verify="));
    let mx_host = records[1]["value"].as_str().expect("a host");
    let domain = team.domain("verified");
    world.dns.domain(&domain, 1).await;
    world.dns.set_verified(&domain, token.expect("a token"), mx_host).await;
    let shown = team.wait("customdomain/verified", "Verified").await;
    assert_eq!(condition(&shown, "Ready").expect("Ready")["status"], "True");
    team.wait_for_reason("customdomain/pending", "Verified", "DnsLookupFailed").await;
    team.wait("customdomain/refused", "Accepted=False").await;

    // The tenant's usage is counted at a start, and every ten minutes.
    operator.terminate().await;
    operator.restart().await;
    looked_at_all(&operator).await;
    let tenant = format!("tenant/{}", team.tenant);
    eventually("the usage is told", async || {
        (team.get(&tenant).await["status"]["usage"]["customDomains"] == 2).then_some(())
    })
    .await;

    let asked = proxy.asked();
    let passes = world.dns.seed_server().queries().len();
    operator.terminate().await;
    operator.restart().await;
    looked_at_all(&operator).await;
    eventually("the records are looked at again", async || {
        (world.dns.seed_server().queries().len() > passes + 3).then_some(())
    })
    .await;
    let written: Vec<_> = proxy.requests()[asked..]
        .iter()
        .filter(|request| request.is_write() && request.resource != "leases")
        .cloned()
        .collect();
    assert!(written.is_empty(), "{written:#?}");
    assert!(
        operator.metric("tempmail_operator_status_patches_total").await >= OBJECTS,
        "nothing was compared"
    );
}

/// Returns when an operator that was just started has looked at all of them.
async fn looked_at_all(operator: &OperatorProcess) {
    operator.comes_to_lead().await;
    eventually("all objects are looked at", async || {
        (operator.metric("tempmail_operator_reconciles_total").await >= OBJECTS).then_some(())
    })
    .await;
}
