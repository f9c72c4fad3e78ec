//! Secrets that are deleted or edited: the operator finds them by itself, though it may not list or watch Secrets. Nothing
//! here has an object reconciled.

use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{Team, assert_conditions};

use super::credential_objects::{CredentialObjects, SECRETS};

#[tokio::test(flavor = "multi_thread")]
async fn writes_deleted_secrets_again() {
    let credentials = CredentialObjects::start().await;
    let (team, [token, signing, password]) = (&credentials.team, credentials.values().await);
    for secret in SECRETS {
        team.delete(&format!("secret/{secret}")).await;
    }
    let new_token = team.wait_for_another_value(SECRETS[0], "token", &token).await;
    let new_password = team.wait_for_another_value(SECRETS[2], "password", &password).await;
    team.wait_until_created(&format!("secret/{}", SECRETS[1])).await;
    credentials.wait_until_valid(&[new_token, signing, new_password]).await;
    credentials.installation.wait_until_token_rejected(&token).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restores_edited_secrets() {
    const EDITED: &str = "chosen by a user";
    let credentials = CredentialObjects::start().await;
    let (team, former) = (&credentials.team, credentials.values().await);
    let mut values = Vec::new();
    for (secret, key) in SECRETS.into_iter().zip(["token", "secret", "password"]) {
        team.set_secret_value(secret, key, EDITED).await;
        values.push(team.wait_for_another_value(secret, key, EDITED).await);
    }
    let values = <[String; 3]>::try_from(values).expect("three values");
    credentials.wait_until_valid(&values).await;
    assert_eq!(values[1], former[1], "the webhook's secret is known");
    assert_ne!([&values[0], &values[2]], [&former[0], &former[2]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_a_lost_secret_of_a_token_whose_spec_says_stall() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    team.apply_ready("ApiToken", "ci", "type: Live, onSecretLoss: Stall").await;
    team.delete("secret/ci-token").await;
    let shown = team.wait_for_reason("apitoken/ci", "Ready", "SecretLost").await;
    assert_conditions(&shown, &[("Ready", "False"), ("Stalled", "True")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_the_name_of_another_secret_when_that_is_deleted() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    team.create_unowned_secret("ci-token").await;
    team.apply("ApiToken", "ci", "type: Live").await;
    team.wait_for_reason("apitoken/ci", "Accepted", "SecretConflict").await;
    team.delete("secret/ci-token").await;
    team.wait_for_condition("apitoken/ci", "Ready").await;
    let token = team.secret_value("ci-token", "token").await;
    installation.wait_until_token_accepted(&token).await;
}
