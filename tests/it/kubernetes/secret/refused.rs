//! Secrets that the API server refuses to write: what objects show, and which credentials stay valid.

use serde_json::json;
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{SharedInstallation, Team, assert_conditions, condition_message};
use tempmail_tests::wait::eventually;

use super::{CredentialObjects, OBJECTS, SECRETS};

/// Waits until an object is not ready for this reason, and returns the message that its user has to act on.
async fn refusal(team: &Team, object: &str, reason: &str) -> String {
    let shown = team.wait_for_reason(object, "Ready", reason).await;
    assert_conditions(&shown, &[("Ready", "False"), ("Accepted", "True"), ("Stalled", "True")]);
    let message = condition_message(&shown, "Stalled");
    assert_eq!(condition_message(&shown, "Ready"), message);
    message.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_an_immutable_secret_and_rotates_when_it_is_deleted() {
    let credentials = CredentialObjects::start().await;
    let team = &credentials.team;
    let former = credentials.values().await;
    for secret in SECRETS {
        team.patch(&format!("secret/{secret}"), &json!({"immutable": true})).await;
    }
    for object in OBJECTS {
        team.request_rotation(object, "now").await;
        let message = refusal(team, object, "SecretImmutable").await;
        assert!(message.contains("immutable"), "{message}");
    }
    credentials.assert_valid(&former).await;
    assert_eq!(credentials.installation.tokens_and_webhooks(team).await, (1, 1));

    for secret in SECRETS {
        team.delete(&format!("secret/{secret}")).await;
    }
    credentials.reconcile_until_ready(&OBJECTS).await;
    credentials.assert_rotated(&former).await;
}

/// A policy that refuses the Secrets of a team with a message that quotes them, in the API server. Returns
/// when it is enforced.
async fn create_policy(team: &Team, installation: &SharedInstallation) {
    let (name, namespace) = (&team.tenant, team.namespace.name());
    let manifest = format!(
        r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
    resourceRules:
      - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}}
  validations:
    - expression: "false"
      messageExpression: "'it has ' + object.data.map(key, key + ': ' + string(object.data[key])).join(', ')"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"#
    );
    installation.cluster.apply(&manifest).await.expect("the policy is accepted");
    eventually("the policy is enforced", || async {
        team.may_create_secret().await.err()?.contains("it has theirs: ").then_some(())
    })
    .await;
}

/// Returns when the policy is not enforced any longer.
async fn delete_policy(team: &Team) {
    team.delete(&format!("validatingadmissionpolicybinding/{}", team.tenant)).await;
    team.delete(&format!("validatingadmissionpolicy/{}", team.tenant)).await;
    eventually("the policy is not enforced", || async { team.may_create_secret().await.ok() }).await;
}

/// Asserts that an object shows the name of the policy, and nothing that the policy quotes.
async fn assert_refused_by_policy(team: &Team, object: &str) {
    let message = refusal(team, object, "SecretRefused").await;
    let policy = &team.tenant;
    let cause = format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denies it");
    assert!(message.contains(&cause) && !message.contains("it has "), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_credentials_that_a_policy_does_not_let_it_rotate() {
    let credentials = CredentialObjects::start().await;
    let CredentialObjects { installation, team } = &credentials;
    let former = credentials.values().await;
    create_policy(team, installation).await;
    for object in OBJECTS {
        team.request_rotation(object, "now").await;
        assert_refused_by_policy(team, object).await;
    }
    credentials.assert_valid(&former).await;
    delete_policy(team).await;
    credentials.reconcile_until_ready(&OBJECTS).await;
    credentials.assert_rotated(&former).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_rows_of_new_objects_whose_secrets_a_policy_refuses() {
    let credentials = CredentialObjects::start().await;
    let CredentialObjects { installation, team } = &credentials;
    create_policy(team, installation).await;
    let address = format!("address: new@{}", team.domain("sys"));
    team.apply("ApiToken", "new", "type: Live").await;
    team.apply("Mailbox", "new", &address).await;
    let new = ["apitoken/new", "mailbox/new"];
    for object in new {
        assert_refused_by_policy(team, object).await;
    }
    let change = async |generation: i64, on_loss: &str, adoption: &str| {
        team.apply("ApiToken", "new", &format!("type: Live, onSecretLoss: {on_loss}")).await;
        team.apply("Mailbox", "new", &format!("{address}, adoptionPolicy: {adoption}")).await;
        for object in new {
            team.wait_for_status(object, "observedGeneration", generation).await;
            assert_refused_by_policy(team, object).await;
        }
    };
    // Reconciliations of the first generation may not have read that the Secret was refused.
    change(2, "Stall", "IfUnowned").await;
    let stored = credentials.stored().await;
    change(3, "Rotate", "Never").await;
    assert_eq!(credentials.stored().await, stored);
    let events = team.list("event").await;
    assert!(!json!(events).to_string().contains("it has "), "an event quotes a credential");
    delete_policy(team).await;
    credentials.reconcile_until_ready(&new).await;
}

/// A quota that allows no Secrets. Returns when it is enforced.
async fn create_quota(team: &Team) {
    team.kubectl(&["create", "quota", "few", "--hard=secrets=0"]).await.expect("the quota is created");
    // Without waiting for the controller manager.
    let counted = r#"{"status": {"hard": {"secrets": "0"}, "used": {"secrets": "0"}}}"#;
    let patch = ["patch", "quota", "few", "--subresource=status", "--type=merge", "-p", counted];
    team.kubectl(&patch).await.expect("the quota is patched");
    eventually("the quota is enforced", || async {
        team.may_create_secret().await.err()?.contains("exceeded quota").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_the_quota_that_refuses_a_secret() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    create_quota(&team).await;
    team.apply("ApiToken", "ci", "type: Live").await;
    let message = refusal(&team, "apitoken/ci", "SecretRefused").await;
    let cause = "(exceeded quota: few, requested: secrets=1, used: secrets=0, limited: secrets=0)";
    assert!(message.contains(cause), "{message}");
    team.delete("quota/few").await;
    eventually("the quota is not enforced", || async { team.may_create_secret().await.ok() }).await;
    team.trigger_reconcile("apitoken/ci").await;
    team.wait_for_condition("apitoken/ci", "Ready").await;
    let token = team.secret_value("ci-token", "token").await;
    assert_eq!(installation.live_token_status(&token).await, 200);
}

mod chaos {
    use tempmail_tests::Installation;
    use tempmail_tests::kubernetes::Team;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: takes 1 minute"]
    async fn retries_a_refused_secret_every_minute() {
        let installation = Installation::shared().await;
        let team = Team::new(installation.cluster).await;
        super::create_quota(&team).await;
        team.apply("ApiToken", "ci", "type: Live").await;
        super::refusal(&team, "apitoken/ci", "SecretRefused").await;
        team.delete("quota/few").await;
        team.wait_for_condition("apitoken/ci", "Ready").await;
    }
}
