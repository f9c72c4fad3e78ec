//! Secrets of objects: those of others are never overwritten, a credential is valid only when its Secret is
//! written, and nothing is written without a change.

mod changed;
mod credential_objects;
mod interrupted;
mod refused;
mod rest;

use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{Team, assert_conditions};

const WEBHOOK: &str = "url: 'https://hooks.example.com/in'";

#[tokio::test(flavor = "multi_thread")]
async fn does_not_overwrite_secrets_that_it_did_not_create() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let token = team.create_unowned_secret("ci-token").await;
    let webhook = team.create_unowned_secret("hook-webhook").await;
    team.apply("ApiToken", "ci", "type: Live").await;
    team.apply("Webhook", "hook", WEBHOOK).await;
    for object in ["apitoken/ci", "webhook/hook"] {
        let shown = team.wait_for_reason(object, "Accepted", "SecretConflict").await;
        assert_conditions(&shown, &[("Ready", "False"), ("Stalled", "True")]);
    }
    assert_eq!(team.get("secret/ci-token").await, token);
    assert_eq!(team.get("secret/hook-webhook").await, webhook);
    assert_eq!(installation.tokens_and_webhooks(&team).await, (0, 0));
    team.delete("secret/hook-webhook").await;
    team.trigger_reconcile("webhook/hook").await;
    team.wait_for_condition("webhook/hook", "Ready").await;
    assert_eq!(installation.tokens_and_webhooks(&team).await, (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_own_a_secret_by_its_label_alone() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    team.create_unowned_secret("ci-token").await;
    team.apply("ApiToken", "ci", "type: Live").await;
    let shown = team.wait_for_reason("apitoken/ci", "Accepted", "SecretConflict").await;
    let labels = serde_json::json!({"tempmail.dev/owner-uid": shown["metadata"]["uid"]});
    let labelled = team.patch("secret/ci-token", &serde_json::json!({"metadata": {"labels": labels}})).await;
    // The status shows that the operator has seen the label when the generation is observed.
    team.apply("ApiToken", "ci", "type: Live, onSecretLoss: Stall").await;
    team.wait_until_observed("apitoken/ci").await;
    team.wait_for_reason("apitoken/ci", "Accepted", "SecretConflict").await;
    assert_eq!(team.get("secret/ci-token").await, labelled);
    assert_eq!(installation.tokens_and_webhooks(&team).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_does_not_take_the_secret_of_another_object() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    team.apply_ready("ApiToken", "one", "type: Live, secret: {name: shared}").await;
    let token = team.secret_value("shared", "token").await;
    team.apply("Webhook", "two", &format!("{WEBHOOK}, secret: {{name: shared}}")).await;
    team.wait_for_reason("webhook/two", "Accepted", "SecretConflict").await;
    assert_eq!(team.secret_value("shared", "token").await, token);
    assert_eq!(installation.live_token_status(&token).await, 200);
}
