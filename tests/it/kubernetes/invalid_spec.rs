//! Objects whose spec the operator cannot read: the definitions of another version let them pass.

use serde_json::{Value, json};
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{Team, assert_conditions};
use tempmail_tests::wait::eventually;

use super::validation::selectors;

#[tokio::test(flavor = "multi_thread")]
async fn reports_objects_it_cannot_read_and_serves_the_others() {
    let mut installation = Installation::exclusive().await;
    let team = Team::new(&installation.cluster).await;
    installation.verified_domain(&team, "served", "served").await;
    declare_domain(&team, "spoilt").await;
    installation.cluster.remove_spec_validation("customdomains").await;
    installation.cluster.remove_spec_validation("tenants").await;

    reports_domains_it_cannot_read(&team).await;
    let served = team.get("customdomain/served").await;
    reports_a_tenant_it_cannot_read(&team).await;
    selectors::judges_selectors_as_kubernetes_does(&team).await;
    selectors::grants_nothing_by_an_invalid_selector(&team).await;
    installation.start_operator();
    reports_the_same_after_a_restart(&team).await;
    assert_eq!(team.get("customdomain/served").await["status"], served["status"]);
    reconciles_a_tenant_that_is_corrected(&team).await;
    assert_eq!(team.get("customdomain/served").await["status"], served["status"], "it was served throughout");

    for name in ["bad", "spoilt"] {
        team.delete(&format!("customdomain/{name}")).await;
    }
    assert!(!installation.domain_exists(&team.domain("spoilt")).await, "its row is deleted with it");
}

async fn declare_domain(team: &Team, label: &str) {
    team.apply("CustomDomain", label, &format!("domain: {}", team.domain(label))).await;
    team.wait_for_condition(&format!("customdomain/{label}"), "Accepted").await;
}

/// Merges into a spec what the validation that was removed would refuse: the API server enforces it for
/// some moments longer.
async fn patch_spec(team: &Team, object: &str, spec: Value) {
    let patch = json!({ "spec": spec });
    eventually("the validation is removed", || async { team.try_patch(object, &patch).await.ok() }).await;
}

async fn reports_domains_it_cannot_read(team: &Team) {
    patch_spec(team, "customdomain/spoilt", json!({"domain": 7})).await;
    team.wait_for_reason("customdomain/spoilt", "Ready", "InvalidSpec").await;
    team.apply("CustomDomain", "bad", "domain: [1]").await;
    let bad = team.wait_for_reason("customdomain/bad", "Ready", "InvalidSpec").await;
    assert_conditions(&bad, &[("Ready", "False"), ("Accepted", "False"), ("Stalled", "True")]);
    declare_domain(team, "good").await;
}

/// What the Tenant granted stays, and nothing new is granted.
async fn reports_a_tenant_it_cannot_read(team: &Team) {
    patch_spec(team, &team.tenant_object(), json!({"retentionHours": "many"})).await;
    team.wait_for_reason(&team.tenant_object(), "Ready", "InvalidSpec").await;
}

async fn reports_the_same_after_a_restart(team: &Team) {
    let before = team.get("customdomain/bad").await;
    team.apply("CustomDomain", "late", "domain: {}").await;
    team.wait_for_reason("customdomain/late", "Ready", "InvalidSpec").await;
    team.trigger_reconcile("customdomain/served").await;
    let after = team.get("customdomain/bad").await;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&after), version(&before), "its status is written once");
}

async fn reconciles_a_tenant_that_is_corrected(team: &Team) {
    patch_spec(team, &team.tenant_object(), json!({"retentionHours": 72})).await;
    team.wait_for_condition(&team.tenant_object(), "Ready").await;
    declare_domain(team, "last").await;
}
