//! Secrets of objects: those of others are never overwritten, a credential is valid only when its Secret is
//! written, and nothing is written without a change.

mod interrupted;
mod refused;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use tempmail_tests::kubernetes::{ApiProxy, Installation, SharedInstallation, Team, Verb, assert_conditions};
use tempmail_tests::wait::eventually;

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

/// The objects.
const OBJECTS: [&str; 3] = ["apitoken/ci", "webhook/hook", "mailbox/box"];
/// Their Secrets.
const SECRETS: [&str; 3] = ["ci-token", "hook-webhook", "box-mailbox"];

/// A token, a webhook and a mailbox of a team.
struct CredentialObjects {
    installation: &'static SharedInstallation,
    team: Team,
}

impl CredentialObjects {
    /// Declares them, and waits until they are ready.
    async fn start() -> Self {
        let installation = Installation::shared().await;
        let team = Team::new(installation.cluster).await;
        let domain = team.domain("sys");
        installation.tempmail(&format!("system-domain add {domain}")).await;
        team.apply("ApiToken", "ci", "type: Live").await;
        team.apply("Webhook", "hook", WEBHOOK).await;
        team.apply("Mailbox", "box", &format!("address: box@{domain}")).await;
        let credentials = Self { installation, team };
        credentials.wait_until_ready(&OBJECTS).await;
        credentials
    }

    async fn wait_until_ready(&self, objects: &[&str]) {
        for object in objects {
            self.team.wait_for_condition(object, "Ready").await;
        }
    }

    async fn reconcile_until_ready(&self, objects: &[&str]) {
        for object in objects {
            self.team.trigger_reconcile(object).await;
        }
        self.wait_until_ready(objects).await;
    }

    /// The token, the webhook's secret, and the mailbox's password.
    async fn values(&self) -> [String; 3] {
        [
            self.team.secret_value(SECRETS[0], "token").await,
            self.team.secret_value(SECRETS[1], "secret").await,
            self.team.secret_value(SECRETS[2], "password").await,
        ]
    }

    async fn sign_in_status(&self, password: &str) -> u16 {
        let address = format!("box@{}", self.team.domain("sys"));
        self.installation.sign_in(&address, password).await.status
    }

    /// Asserts that the token and the password are valid, and that they are in the Secrets.
    async fn assert_valid(&self, values: &[String; 3]) {
        assert_eq!(self.values().await, *values);
        assert_eq!(self.installation.live_token_status(&values[0]).await, 200);
        assert_eq!(self.sign_in_status(&values[2]).await, 200);
    }

    /// Waits until the token and the password are valid, and asserts that they are in the Secrets.
    async fn wait_until_valid(&self, values: &[String; 3]) {
        self.installation.wait_until_token_accepted(&values[0]).await;
        eventually("the password is accepted", || async {
            (self.sign_in_status(&values[2]).await == 200).then_some(())
        })
        .await;
        assert_eq!(self.values().await, *values);
    }

    /// Asserts that all values differ from former ones, of which none is valid.
    async fn assert_rotated(&self, former: &[String; 3]) {
        let values = self.values().await;
        assert!(values.iter().zip(former).all(|(now, former)| now != former), "a rotation was requested");
        self.assert_valid(&values).await;
        self.installation.wait_until_token_rejected(&former[0]).await;
        assert_eq!(self.sign_in_status(&former[2]).await, 401);
    }

    /// What the database has of them.
    async fn stored(&self) -> Vec<Vec<u8>> {
        sqlx::query_scalar(
            "SELECT k.hash FROM api_token k JOIN tenant t ON t.id = k.tenant WHERE t.name = $1 AND k.revoked_at IS NULL
             UNION ALL
             SELECT w.secret FROM webhook w JOIN tenant t ON t.id = w.tenant WHERE t.name = $1
             UNION ALL
             SELECT b.password_hash::bytea FROM mailbox b JOIN tenant t ON t.id = b.tenant WHERE t.name = $1",
        )
        .bind(&self.team.tenant)
        .fetch_all(&self.installation.pool())
        .await
        .expect("the rows are there")
    }
}

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

/// ApiTokens of the test.
const TOKENS: usize = 10;

/// How often each Secret was read after the first `count` requests.
fn reads_since(proxy: &ApiProxy, count: usize) -> BTreeMap<String, usize> {
    let mut reads = BTreeMap::new();
    for request in proxy.requests_since(count) {
        if request.resource == "secrets" && request.verb == Verb::Get {
            *reads.entry(request.name.expect("a name")).or_default() += 1;
        }
    }
    reads
}

/// Returns when the operator has renewed its lease some times, so that everything that it does all the time is done.
async fn wait_for_renewals(proxy: &ApiProxy) {
    let renewals = || proxy.requests().iter().filter(|it| it.resource == "leases" && it.is_write()).count();
    let expected = renewals() + 6;
    eventually("the lease is renewed", || async { (renewals() >= expected).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_at_each_secret_once_in_five_minutes_and_at_once_after_a_change_of_its_object() {
    let mut installation = Installation::without_operator().await;
    let proxy = ApiProxy::start(&installation.cluster).await;
    installation.app.clock.pause();
    installation.app.start_operator_with(proxy.client(), |config| config.operator.secret_check_seconds = 300);
    let team = Team::new(&installation.cluster).await;
    for index in 0..TOKENS {
        team.apply_ready("ApiToken", &format!("token-{index}"), "type: Live").await;
    }

    // What follows the creation of the last one is done, too.
    wait_for_renewals(&proxy).await;
    let count = proxy.request_count();
    team.rotate("apitoken/token-0", "now").await;
    wait_for_renewals(&proxy).await;
    let reads = reads_since(&proxy, count);
    assert_eq!(reads.keys().collect::<Vec<_>>(), ["token-0-token"], "{reads:?}");

    for _ in 0..2 {
        let count = proxy.request_count();
        installation.app.clock.advance(SignedDuration::from_mins(5));
        eventually("each Secret is looked at", || async {
            (reads_since(&proxy, count).len() == TOKENS).then_some(())
        })
        .await;
        wait_for_renewals(&proxy).await;
        let reads = reads_since(&proxy, count);
        assert!(reads.values().all(|times| *times == 1), "{reads:?}");
    }

    team.delete("secret/token-1-token").await;
    installation.app.clock.advance(SignedDuration::from_mins(5));
    team.wait_until_created("secret/token-1-token").await;
}
