//! An operator that is restricted to named namespaces: what is outside is neither reconciled nor missing.

use serde_json::json;
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{Cluster, Team};
use tempmail_tests::wait::eventually;

/// Declares a domain, and waits until it is accepted.
async fn declare_domain(team: &Team, label: &str) {
    team.apply("CustomDomain", label, &format!("domain: {}", team.domain(label))).await;
    team.wait_for_condition(&format!("customdomain/{label}"), "Accepted").await;
}

/// Starts an operator of these teams' namespaces only.
fn start_for(installation: &mut Installation<Cluster>, teams: &[&Team]) {
    let namespaces = teams.iter().map(|team| team.namespace.name().to_owned()).collect();
    let client = installation.cluster.client();
    installation.app.start_operator_with(client, |config| config.operator.watch_namespaces = namespaces);
}

/// Waits until an object of this name is recorded as missing (`Some(true)`), or its row is released (`None`).
async fn wait_until_missing(installation: &Installation<Cluster>, name: &str, expected: Option<bool>) {
    eventually(&format!("{name} is missing: {expected:?}"), || async {
        (installation.is_recorded_missing(name).await == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_what_is_in_a_namespace_that_is_no_longer_watched() {
    let mut installation = Installation::exclusive().await;
    let (first, second) = (Team::new(&installation.cluster).await, Team::new(&installation.cluster).await);
    let outside = Team::new(&installation.cluster).await;
    declare_domain(&outside, "kept").await;
    for label in ["gone", "later"] {
        declare_domain(&first, label).await;
    }
    installation.app.stop_operator().await;
    first.delete_without_finalizers("customdomain/gone").await;
    let before = outside.get("customdomain/kept").await;
    start_for(&mut installation, &[&first, &second]);
    wait_until_missing(&installation, "gone", Some(true)).await;
    outside.patch("customdomain/kept", &json!({"spec": {"deletionPolicy": "Retain"}})).await;
    declare_domain(&second, "new").await;

    // A day later, when rows of missing objects are released.
    installation.app.stop_operator().await;
    first.delete_without_finalizers("customdomain/later").await;
    installation.app.advance_hours(25);
    start_for(&mut installation, &[&first, &second]);
    wait_until_missing(&installation, "gone", None).await;
    wait_until_missing(&installation, "later", Some(true)).await;
    assert_eq!(installation.is_recorded_missing("kept").await, Some(false));
    let domain = outside.domain("kept");
    assert_eq!(installation.domain_manager(&domain).await.as_deref(), Some("kubernetes"));
    let after = outside.get("customdomain/kept").await;
    assert_eq!(after["status"], before["status"], "it was reconciled");

    // The whole cluster again.
    installation.start_operator();
    outside.wait_until_observed("customdomain/kept").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn follows_the_labels_and_the_tenants_of_the_namespaces_that_it_watches() {
    let mut installation = Installation::exclusive().await;
    let (first, second) = (Team::new(&installation.cluster).await, Team::new(&installation.cluster).await);
    start_for(&mut installation, &[&first, &second]);
    let by_label = json!({"allowedNamespaces": {"matchLabels": {"team": "shop"}, "matchExpressions": null}});
    second.patch_tenant(by_label).await;
    second.apply("CustomDomain", "mail", &format!("domain: {}", second.domain("mail"))).await;
    second.wait_for_condition("customdomain/mail", "Accepted=False").await;

    let namespace = format!("namespace/{}", second.namespace.name());
    second.patch(&namespace, &json!({"metadata": {"labels": {"team": "shop"}}})).await;
    second.wait_for_condition("customdomain/mail", "Accepted").await;
    second.patch(&namespace, &json!({"metadata": {"labels": {"team": null}}})).await;
    second.wait_for_condition("customdomain/mail", "Accepted=False").await;
}
