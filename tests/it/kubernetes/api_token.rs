//! ApiToken: tokens, their Secrets, rotation, expiry and limits.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{SharedInstallation, Team, assert_conditions};
use tempmail_tests::wait::eventually;

/// The token `ci` of a team.
struct TokenFixture {
    installation: &'static SharedInstallation,
    team: Team,
    token: String,
}

impl TokenFixture {
    /// Declares a tenant and the token with these fields of its spec, and waits until it is ready.
    async fn start(spec: &str) -> Self {
        Self::with_tenant("", spec).await
    }

    async fn with_tenant(tenant: &str, spec: &str) -> Self {
        let installation = Installation::shared().await;
        let team = Team::with_spec(installation.cluster, tenant).await;
        team.apply_ready("ApiToken", "ci", spec).await;
        let token = team.secret_value("ci-token", "token").await;
        Self { installation, team, token }
    }

    /// Waits until the Secret has another token than `former`.
    async fn another_token(&self, former: &str) -> String {
        self.team.wait_for_another_value("ci-token", "token", former).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_a_token_that_acts_for_the_tenant() {
    let TokenFixture { installation, team, token: live } = TokenFixture::start("type: Live").await;
    assert_eq!(installation.live_token_status(&live).await, 200);
    let shown = team.apply_ready("ApiToken", "dash", "type: Pro, secret: {name: elsewhere}").await;
    assert_eq!(shown["status"]["secretName"], "elsewhere");
    let pro = team.secret_value("elsewhere", "token").await;
    assert_eq!(shown["status"]["hint"], pro[pro.len() - 4..]);
    let listed = installation.get_as_pro(&pro, "/pro/api/tokens").await.expect(200);
    let names: Vec<_> = listed["tokens"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    let name = |object: &str| format!("{}/{object}", team.namespace.name());
    assert_eq!(names, [&name("dash"), &name("ci")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_trail_names_the_object() {
    let TokenFixture { installation, team, .. } = TokenFixture::start("type: Live").await;
    let shown = team.get("apitoken/ci").await;
    let entries = installation.app.tempmail("audit --json --limit 100000").await.json();
    let mut entries = entries.as_array().expect("a list").iter();
    let created = entries.find(|entry| entry["subject"] == shown["status"]["tokenId"]).expect("an entry");
    let uid = shown["metadata"]["uid"].as_str().expect("an object has a uid");
    assert_eq!((&created["kind"], &created["action"]), (&json!("token"), &json!("created")));
    assert_eq!(created["actor"], format!("object {uid}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn http_does_not_revoke_a_declared_token() {
    let TokenFixture { installation, team, token } = TokenFixture::start("type: Pro").await;
    let shown = team.get("apitoken/ci").await;
    let path = format!("/pro/api/tokens/{}", shown["status"]["tokenId"].as_str().expect("an id"));
    let revoked = installation.request(Method::DELETE, &path).bearer(&token).send().await;
    revoked.assert_api_error(409, "managed_by_kubernetes");
    installation.get_as_pro(&token, "/pro/api/tokens").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn rotates_once_for_each_value_of_the_annotation() {
    let fixture = TokenFixture::start("type: Live, onSecretLoss: Stall").await;
    let TokenFixture { installation, team, token: former } = &fixture;
    team.rotate("apitoken/ci", "1").await;
    let token = fixture.another_token(former).await;
    installation.wait_until_token_rejected(former).await;
    assert_eq!(installation.live_token_status(&token).await, 200);
    team.trigger_reconcile("apitoken/ci").await;
    team.request_rotation("apitoken/ci", "1").await;
    team.annotate("apitoken/ci", "tempmail.dev/paused", "true").await;
    team.wait_for_condition("apitoken/ci", "ReconciliationPaused").await;
    assert_eq!(team.secret_value("ci-token", "token").await, token, "the value was handled before");
    assert_eq!(installation.tokens_and_webhooks(team).await, (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn replaces_a_token_that_a_user_wrote_into_the_secret() {
    let fixture = TokenFixture::start("type: Live").await;
    let TokenFixture { installation, team, token: former } = &fixture;
    let theirs = format!("tm_live_{}", "0123456789abcdef".repeat(4));
    team.set_secret_value("ci-token", "token", &theirs).await;
    team.trigger_reconcile("apitoken/ci").await;
    let token = fixture.another_token(&theirs).await;
    assert_ne!(token, *former);
    installation.wait_until_token_rejected(former).await;
    team.wait_for_condition("apitoken/ci", "Ready").await;
    installation.wait_until_token_accepted(&token).await;
    assert_eq!(installation.live_token_status(&theirs).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_another_token_when_the_secret_is_deleted() {
    let TokenFixture { installation, team, token: former } = TokenFixture::start("type: Live").await;
    team.delete("secret/ci-token").await;
    team.trigger_reconcile("apitoken/ci").await;
    installation.wait_until_token_rejected(&former).await;
    team.wait_until_created("secret/ci-token").await;
    let token = team.secret_value("ci-token", "token").await;
    installation.wait_until_token_accepted(&token).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stalls_when_the_secret_is_lost_until_a_rotation_if_the_spec_says_so() {
    let fixture = TokenFixture::start("type: Live, onSecretLoss: Stall").await;
    let TokenFixture { installation, team, token: former } = fixture;
    team.delete("secret/ci-token").await;
    team.trigger_reconcile("apitoken/ci").await;
    let shown = team.wait_for_reason("apitoken/ci", "Ready", "SecretLost").await;
    assert_conditions(&shown, &[("Stalled", "True"), ("Accepted", "True")]);
    assert_eq!(installation.live_token_status(&former).await, 200, "the token stays valid");
    team.request_rotation("apitoken/ci", "now").await;
    team.wait_for_condition("apitoken/ci", "Ready").await;
    let token = team.secret_value("ci-token", "token").await;
    assert_eq!(installation.live_token_status(&token).await, 200);
    installation.wait_until_token_rejected(&former).await;
}

/// `expiresAt` of a spec, in so many seconds.
fn expires_in(installation: &SharedInstallation, seconds: i64) -> String {
    let at = installation.app.clock.now() + SignedDuration::from_secs(seconds);
    format!("type: Live, expiresAt: '{at}'")
}

#[tokio::test(flavor = "multi_thread")]
async fn expires_a_token_when_its_spec_says() {
    let installation = Installation::shared().await;
    let TokenFixture { team, token, .. } = TokenFixture::start(&expires_in(installation, 3600)).await;
    assert_eq!(installation.live_token_status(&token).await, 200);
    team.apply("ApiToken", "ci", &expires_in(installation, -1)).await;
    let shown = team.wait_for_reason("apitoken/ci", "Ready", "Expired").await;
    assert_conditions(&shown, &[("Stalled", "True")]);
    let refused = installation.request(Method::GET, "/v1/tokens").live(&token).send().await;
    refused.assert_v1_error(440, "session_expired");

    let soon = installation.app.clock.now() + SignedDuration::from_secs(3);
    team.apply("ApiToken", "soon", &format!("type: Live, expiresAt: '{soon}'")).await;
    team.wait_for_reason("apitoken/soon", "Ready", "Expired").await;
    assert!(installation.app.clock.now() >= soon - SignedDuration::from_secs(1), "it expired early");
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_no_token_for_a_spec_that_has_expired() {
    let installation = Installation::shared().await;
    let TokenFixture { team, .. } = TokenFixture::start(&expires_in(installation, 3600)).await;
    team.apply("ApiToken", "ci", &expires_in(installation, -1)).await;
    let shown = team.wait_for_reason("apitoken/ci", "Ready", "Expired").await;
    installation.delete_token_row(shown["status"]["tokenId"].as_str().expect("an id")).await;
    team.apply("ApiToken", "late", &expires_in(installation, -1)).await;
    team.wait_for_reason("apitoken/late", "Ready", "Expired").await;
    team.wait_until("apitoken/ci", "no id of the row that was deleted", |shown| {
        shown["status"].get("tokenId").is_none()
    })
    .await;
    assert_eq!(installation.tokens_and_webhooks(&team).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn revokes_the_token_when_the_namespace_loses_its_grant() {
    let TokenFixture { installation, team, token: former } = TokenFixture::start("type: Live").await;
    team.revoke_grant().await;
    team.wait_for_reason("apitoken/ci", "Accepted", "TenantRefNotPermitted").await;
    installation.wait_until_token_rejected(&former).await;
    team.declare_tenant("").await;
    team.wait_for_condition("apitoken/ci", "Ready").await;
    let token = team.secret_value("ci-token", "token").await;
    assert_ne!(token, former);
    assert_eq!(installation.live_token_status(&token).await, 200);
    assert_eq!(installation.live_token_status(&former).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn revokes_the_token_of_a_deleted_object() {
    let TokenFixture { installation, team, token } = TokenFixture::start("type: Live").await;
    team.delete("apitoken/ci").await;
    assert_eq!(installation.live_token_status(&token).await, 401);
    assert_eq!(installation.tokens_and_webhooks(&team).await, (0, 0));
    eventually("the Secret is collected", || async {
        team.get_opt("secret/ci-token").await.is_none().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_token_beyond_the_limit_and_rotates_at_the_limit() {
    let fixture = TokenFixture::with_tenant("limits: {tokens: 1}", "type: Live").await;
    let TokenFixture { installation, team, token: former } = &fixture;
    team.apply("ApiToken", "more", "type: Live").await;
    team.wait_for_reason("apitoken/more", "Accepted", "QuotaExceeded").await;
    team.wait_for_reason("apitoken/more", "Ready", "QuotaExceeded").await;
    team.request_rotation("apitoken/ci", "1").await;
    let token = fixture.another_token(former).await;
    installation.wait_until_token_rejected(former).await;
    installation.wait_until_token_accepted(&token).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rotates_under_a_limit_that_was_lowered() {
    let fixture = TokenFixture::start("type: Live").await;
    let TokenFixture { installation, team, token: former } = &fixture;
    team.apply_ready("ApiToken", "more", "type: Live").await;
    team.declare_tenant("limits: {tokens: 1}").await;
    team.wait_for_condition(&team.tenant_object(), "QuotaExceeded").await;
    team.request_rotation("apitoken/ci", "1").await;
    let token = fixture.another_token(former).await;
    installation.wait_until_token_rejected(former).await;
    installation.wait_until_token_accepted(&token).await;
    // The row that the rotation replaced does not free capacity for a new token.
    team.apply("ApiToken", "third", "type: Live").await;
    team.wait_for_reason("apitoken/third", "Accepted", "QuotaExceeded").await;
    assert_eq!(installation.tokens_and_webhooks(team).await, (2, 0));
}
