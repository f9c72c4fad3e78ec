//! API tokens, declared.

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_model::clock::Clock as _;
use tempmail_tests::World;
use tempmail_tests::kubernetes::{Team, condition};
use tempmail_tests::wait::eventually;

use super::secret::{annotate, is_refused, look, rows, status_of, swap, value};

const ROTATE: &str = "tempmail.dev/rotate-requested-at";

/// Declares the token `ci` with these further fields, and waits until it is ready; the token.
async fn ready(team: &Team<'_>, spec: &str) -> String {
    team.apply("ApiToken", "ci", spec).await.expect("it is taken");
    team.wait("apitoken/ci", "Ready").await;
    value(team, "ci-token", "token").await
}

/// Waits until the Secret holds another token than `former`.
async fn another(team: &Team<'_>, former: &str) -> String {
    eventually("there is another token", || async {
        let token = value(team, "ci-token", "token").await;
        (token != former).then_some(token)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_the_secret_acts_for_the_tenant_on_its_surface() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let live = ready(&team, "type: Live").await;
    assert_eq!(status_of(world, &live).await, 200);
    team.apply("ApiToken", "dash", "type: Pro, secret: {name: elsewhere}").await.expect("it is taken");
    let shown = team.wait("apitoken/dash", "Ready").await;
    assert_eq!(shown["status"]["secretName"], "elsewhere");
    let pro = value(&team, "elsewhere", "token").await;
    assert_eq!(shown["status"]["hint"], pro[pro.len() - 4..]);
    let listed = world.request(Method::GET, "/pro/api/tokens").bearer(&pro).send().await.expect(200);
    let named: Vec<_> = listed["tokens"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    let name = |object: &str| format!("{}/{object}", team.namespace.name());
    assert_eq!(named, [&name("dash"), &name("ci")]);

    let id = shown["status"]["tokenId"].as_str().expect("an id");
    let path = format!("/pro/api/tokens/{id}");
    let revoked = world.request(Method::DELETE, &path).bearer(&pro).send().await;
    revoked.assert_api_error(409, "managed_by_kubernetes");
    assert_eq!(status_of(world, &live).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_makes_another_token_once_and_ends_the_former_one() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let former = ready(&team, "type: Live, onSecretLoss: Stall").await;
    annotate(&team, "apitoken/ci", ROTATE, "1").await;
    let token = another(&team, &former).await;
    team.kubectl(&[
        "wait",
        "apitoken/ci",
        "--for=jsonpath={.status.lastHandledRotateAt}=1",
        "--timeout=120s",
    ])
    .await
    .expect("it is told");
    is_refused(world, &former).await;
    assert_eq!(status_of(world, &token).await, 200);
    look(&team, "apitoken/ci").await;
    annotate(&team, "apitoken/ci", ROTATE, "1").await;
    annotate(&team, "apitoken/ci", "tempmail.dev/paused", "true").await;
    team.wait("apitoken/ci", "ReconciliationPaused").await;
    assert_eq!(value(&team, "ci-token", "token").await, token, "one value asks once");
    assert_eq!(rows(world, &team).await, (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_was_put_into_the_secret_is_put_right_and_never_let_in() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let former = ready(&team, "type: Live").await;
    let theirs = format!("tm_live_{}", "0123456789abcdef".repeat(4));
    swap(&team, "ci-token", "token", &theirs).await;
    look(&team, "apitoken/ci").await;
    let token = another(&team, &theirs).await;
    assert_ne!(token, former);
    is_refused(world, &former).await;
    team.wait("apitoken/ci", "Ready").await;
    eventually("the new token is let in", || async { (status_of(world, &token).await == 200).then_some(()) })
        .await;
    assert_eq!(status_of(world, &theirs).await, 401);

    team.kubectl(&["delete", "secret", "ci-token"]).await.expect("it goes");
    look(&team, "apitoken/ci").await;
    is_refused(world, &token).await;
    team.kubectl(&["wait", "secret/ci-token", "--for=create", "--timeout=120s"]).await.expect("it is back");
    let last = value(&team, "ci-token", "token").await;
    eventually("the last token is let in", || async { (status_of(world, &last).await == 200).then_some(()) })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_secret_stalls_where_that_is_asked_for_until_a_rotation() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let former = ready(&team, "type: Live, onSecretLoss: Stall").await;
    team.kubectl(&["delete", "secret", "ci-token"]).await.expect("it goes");
    look(&team, "apitoken/ci").await;
    let shown = team.wait_for_reason("apitoken/ci", "Ready", "SecretLost").await;
    assert_eq!(condition(&shown, "Stalled").expect("Stalled")["status"], "True");
    assert_eq!(condition(&shown, "Accepted").expect("Accepted")["status"], "True");
    assert_eq!(status_of(world, &former).await, 200, "it works on");
    annotate(&team, "apitoken/ci", ROTATE, "now").await;
    team.wait("apitoken/ci", "Ready").await;
    let token = value(&team, "ci-token", "token").await;
    assert_eq!(status_of(world, &token).await, 200);
    is_refused(world, &former).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_ends_when_it_says_and_none_is_made_for_what_has_ended() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let at = |seconds| world.app.clock.now() + SignedDuration::from_secs(seconds);
    let token = ready(&team, &format!("type: Live, expiresAt: '{}'", at(3600))).await;
    assert_eq!(status_of(world, &token).await, 200);
    team.apply("ApiToken", "ci", &format!("type: Live, expiresAt: '{}'", at(-1))).await.expect("it is taken");
    let shown = team.wait_for_reason("apitoken/ci", "Ready", "Expired").await;
    assert_eq!(condition(&shown, "Stalled").expect("Stalled")["status"], "True");
    let refused = world.request(Method::GET, "/v1/tokens").live(&token).send().await;
    refused.assert_v1_error(440, "session_expired");

    // Its row is forgotten.
    let deleted = sqlx::query("DELETE FROM api_token WHERE id = $1::uuid")
        .bind(shown["status"]["tokenId"].as_str())
        .execute(&world.pool())
        .await;
    assert_eq!(deleted.expect("a row").rows_affected(), 1);
    team.apply("ApiToken", "late", &format!("type: Live, expiresAt: '{}'", at(-1)))
        .await
        .expect("it is taken");
    team.wait_for_reason("apitoken/late", "Ready", "Expired").await;
    eventually("the row is missed", || async {
        team.get("apitoken/ci").await["status"].get("tokenId").is_none().then_some(())
    })
    .await;
    assert_eq!(rows(world, &team).await, (0, 0));

    let soon = at(6);
    team.apply("ApiToken", "soon", &format!("type: Live, expiresAt: '{soon}'")).await.expect("it is taken");
    team.wait_for_reason("apitoken/soon", "Ready", "Expired").await;
    assert!(world.app.clock.now() >= soon - SignedDuration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_grant_ends_the_token_and_one_that_is_given_back_brings_another() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let former = ready(&team, "type: Live").await;
    lose_grant(&team).await;
    team.wait_for_reason("apitoken/ci", "Accepted", "TenantRefNotPermitted").await;
    is_refused(world, &former).await;
    team.declare_tenant("").await;
    team.wait("apitoken/ci", "Ready").await;
    let token = value(&team, "ci-token", "token").await;
    assert_ne!(token, former);
    assert_eq!(status_of(world, &token).await, 200);
    assert_eq!(status_of(world, &former).await, 401);
}

/// Takes the namespace out of the tenant's list.
pub(super) async fn lose_grant(team: &Team<'_>) {
    let nowhere = r#"{"spec": {"allowedNamespaces": {"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["nowhere"]}]}}}"#;
    team.kubectl(&["patch", "tenant", &team.tenant, "--type=merge", "-p", nowhere])
        .await
        .expect("it is patched");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_object_ends_its_token() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let token = ready(&team, "type: Live").await;
    team.delete("apitoken/ci").await;
    assert_eq!(status_of(world, &token).await, 401);
    assert_eq!(rows(world, &team).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tenants_limit_holds_and_a_rotation_needs_no_room() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "  limits: {tokens: 1}").await;
    let former = ready(&team, "type: Live").await;
    team.apply("ApiToken", "more", "type: Live").await.expect("it is taken");
    let shown = team.wait_for_reason("apitoken/more", "Accepted", "QuotaExceeded").await;
    assert_eq!(condition(&shown, "Ready").expect("Ready")["reason"], "QuotaExceeded");
    annotate(&team, "apitoken/ci", ROTATE, "1").await;
    let token = another(&team, &former).await;
    is_refused(world, &former).await;
    eventually("the new token is let in", || async { (status_of(world, &token).await == 200).then_some(()) })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_needs_no_room_under_a_limit_that_was_lowered_either() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let former = ready(&team, "type: Live").await;
    team.apply("ApiToken", "more", "type: Live").await.expect("it is taken");
    team.wait("apitoken/more", "Ready").await;
    team.declare_tenant("  limits: {tokens: 1}").await;
    let tenant = format!("tenant/{}", team.tenant);
    team.wait(&tenant, "QuotaExceeded").await;
    annotate(&team, "apitoken/ci", ROTATE, "1").await;
    let token = another(&team, &former).await;
    is_refused(world, &former).await;
    eventually("the new token is let in", || async { (status_of(world, &token).await == 200).then_some(()) })
        .await;
    // What the rotation takes the place of is no room for a new one.
    team.apply("ApiToken", "third", "type: Live").await.expect("it is taken");
    team.wait_for_reason("apitoken/third", "Accepted", "QuotaExceeded").await;
    assert_eq!(rows(world, &team).await, (2, 0));
}
