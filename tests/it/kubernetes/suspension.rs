//! A suspended Tenant, and the objects of its teams: the conditions do not claim what is refused.

use serde_json::{Value, json};
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{
    SharedInstallation, Team, assert_conditions, condition, condition_message, condition_reason,
};

const OBJECTS: [&str; 4] = ["customdomain/mail", "apitoken/ci", "webhook/hook", "mailbox/box"];

/// A team with a Ready object of each kind.
async fn team_with_objects(installation: &'static SharedInstallation) -> Team {
    let team = Team::new(installation.cluster).await;
    let domain = installation.verified_domain(&team, "mail", "mail").await;
    team.apply("ApiToken", "ci", "type: Live").await;
    team.apply("Webhook", "hook", "url: 'https://hooks.example.com/in'").await;
    team.apply("Mailbox", "box", &format!("address: box@{domain}")).await;
    for object in OBJECTS {
        team.wait_for_condition(object, "Ready").await;
    }
    team
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_suspended_tenant_are_not_ready_until_it_is_resumed() {
    let installation = Installation::shared().await;
    let team = team_with_objects(installation).await;
    team.patch_tenant(json!({"suspended": true})).await;
    for object in OBJECTS {
        let shown = team.wait_for_reason(object, "Ready", "TenantSuspended").await;
        assert_conditions(&shown, &[("Ready", "False"), ("Accepted", "True"), ("Stalled", "True")]);
        let message = condition_message(&shown, "Ready");
        assert!(message.starts_with(&format!("The Tenant {} is suspended: ", team.tenant)), "{message}");
    }
    let domain = team.get("customdomain/mail").await;
    assert_conditions(&domain, &[("Verified", "True")]);
    let webhook = team.get("webhook/hook").await;
    assert_conditions(&webhook, &[("Delivering", "False")]);
    assert_eq!(condition_reason(&webhook, "Delivering"), "TenantSuspended");
    team.wait_for_event("TenantSuspended").await;

    team.patch_tenant(json!({"suspended": false})).await;
    for object in OBJECTS {
        let shown = team.wait_for_condition(object, "Ready").await;
        assert!(condition(&shown, "Stalled").is_none(), "{shown:#}");
    }
    assert_conditions(&team.get("webhook/hook").await, &[("Delivering", "True")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_tenant_says_so_and_is_ready() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let tenant = team.tenant_object();
    assert!(condition(&team.get(&tenant).await, "Suspended").is_none());
    team.patch_tenant(json!({"suspended": true})).await;
    let shown = team.wait_for_reason(&tenant, "Suspended", "TenantSuspended").await;
    assert_conditions(&shown, &[("Ready", "True"), ("Suspended", "True")]);
    team.patch_tenant(json!({"suspended": false})).await;
    let is_resumed = |shown: &Value| condition(shown, "Suspended").is_none();
    team.wait_until(&tenant, "no condition Suspended", is_resumed).await;
}
