//! An operator whose requests are delayed or interrupted around the write of a Secret.

use tempmail_tests::kubernetes::{ApiProxy, ApiRequest, Cluster, Installation, StopPoint, Team, Verb};
use tempmail_tests::wait::eventually;

use super::WEBHOOK;

/// An operator in the test process, behind a proxy.
struct ProxiedInstallation {
    installation: Installation<Cluster>,
    proxy: ApiProxy,
    team: Team,
}

impl ProxiedInstallation {
    async fn start() -> Self {
        let mut installation = Installation::without_operator().await;
        let proxy = ApiProxy::start(&installation.cluster).await;
        installation.app.start_operator(proxy.client());
        let team = Team::new(&installation.cluster).await;
        Self { installation, proxy, team }
    }

    /// Aborts the operator and starts another one.
    fn restart_operator(&mut self) {
        self.installation.app.start_operator(self.proxy.client());
    }

    /// Waits for a request after the first `count`.
    async fn wait_for_request(&self, what: &str, count: usize, matches: impl Fn(&ApiRequest) -> bool) {
        eventually(what, || async { self.proxy.requests_since(count).iter().any(&matches).then_some(()) })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_overwrite_a_secret_that_is_created_just_before_its_own() {
    let ProxiedInstallation { installation, proxy, team } = ProxiedInstallation::start().await;
    let writes_secret = |request: &ApiRequest| request.resource == "secrets" && request.is_write();
    proxy.hold(writes_secret);
    team.apply("ApiToken", "late", "type: Live").await;
    team.apply("Webhook", "late", WEBHOOK).await;
    eventually("both Secrets are about to be written", || async {
        let held = proxy.requests().into_iter().filter(writes_secret).count();
        (held >= 2).then_some(())
    })
    .await;
    let token = team.create_unowned_secret("late-token").await;
    let webhook = team.create_unowned_secret("late-webhook").await;
    proxy.release();
    team.wait_for_reason("apitoken/late", "Accepted", "SecretConflict").await;
    team.wait_for_reason("webhook/late", "Accepted", "SecretConflict").await;
    assert_eq!(team.get("secret/late-token").await, token);
    assert_eq!(team.get("secret/late-webhook").await, webhook);
    let active = installation.active_tokens_and_webhooks(&team).await;
    assert_eq!(active, (0, 0), "a credential is valid that is written nowhere");
    for (object, secret) in [("apitoken/late", "late-token"), ("webhook/late", "late-webhook")] {
        team.delete(&format!("secret/{secret}")).await;
        team.trigger_reconcile(object).await;
        team.wait_for_condition(object, "Ready").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_nothing_when_it_reconciles_ready_objects_again() {
    let fixture = ProxiedInstallation::start().await;
    let ProxiedInstallation { proxy, team, .. } = &fixture;
    team.apply_ready("ApiToken", "first", "type: Live").await;
    team.apply_ready("Webhook", "first", WEBHOOK).await;
    let before = proxy.request_count();
    for (object, secret) in [("apitoken/first", "first-token"), ("webhook/first", "first-webhook")] {
        team.trigger_reconcile(object).await;
        let reads =
            |request: &ApiRequest| request.verb == Verb::Get && request.name.as_deref() == Some(secret);
        fixture.wait_for_request("the Secret is read", before, reads).await;
    }
    // Whatever the operator writes after it has read the Secrets, it writes before this one is ready.
    team.apply_ready("ApiToken", "next", "type: Live").await;
    let is_of_next = |request: &ApiRequest| {
        request.path.contains("/next") || String::from_utf8_lossy(&request.body).contains("next-token")
    };
    // The usage of the tenant is written some seconds after its objects changed. A write that follows from an
    // object without its last status is refused.
    let is_expected = |request: &ApiRequest| {
        request.resource == "tenants" || request.status == Some(409) || is_of_next(request)
    };
    let others: Vec<_> = proxy.writes_since(before).into_iter().filter(|it| !is_expected(it)).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn continues_after_an_abort_before_or_after_any_write() {
    let mut fixture = ProxiedInstallation::start().await;
    for nth in 1..=3 {
        for point in [StopPoint::BeforeWrite, StopPoint::AfterWrite] {
            let name = format!("aborted-{nth}-{point:?}").to_lowercase();
            let mut reached = fixture.proxy.stop_at_write(nth, point, || {});
            fixture.team.apply("ApiToken", &name, "type: Live").await;
            reached.wait().await;
            fixture.restart_operator();
            fixture.team.wait_for_condition(&format!("apitoken/{name}"), "Ready").await;
            let token = fixture.team.secret_value(&format!("{name}-token"), "token").await;
            assert_eq!(fixture.installation.live_token_status(&token).await, 200, "{name}");
        }
    }
    let rows = fixture.installation.tokens_and_webhooks(&fixture.team).await;
    assert_eq!(rows, (6, 0), "each object has one row");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_lists_tenants_last_revokes_no_token() {
    let mut fixture = ProxiedInstallation::start().await;
    fixture.team.apply_ready("ApiToken", "ci", "type: Live").await;
    let token = fixture.team.secret_value("ci-token", "token").await;
    let lists_tenants = |it: &ApiRequest| it.resource == "tenants" && it.query.contains("limit=500");
    fixture.proxy.hold(lists_tenants);
    let before = fixture.proxy.request_count();
    fixture.restart_operator();
    let reads_secret = |it: &ApiRequest| it.name.as_deref() == Some("ci-token");
    fixture.wait_for_request("the Secret is read", before, reads_secret).await;
    fixture.wait_for_request("the tenants are listed", before, lists_tenants).await;
    fixture.proxy.release();
    fixture.team.trigger_reconcile("apitoken/ci").await;
    fixture.team.apply_ready("ApiToken", "last", "type: Live").await;
    assert_eq!(fixture.team.secret_value("ci-token", "token").await, token);
    assert_eq!(fixture.installation.live_token_status(&token).await, 200);
}
