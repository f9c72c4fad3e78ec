//! An API server that fails requests, drops watches, restarts, or lacks the definitions of kinds.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tempmail_tests::fleet::Role;
use tempmail_tests::kubernetes::{
    ApiFault, ApiProxy, ApiRequest, Cluster, Installation, OperatorProcess, Team, Verb,
};
use tempmail_tests::wait::eventually;

/// An operator as a process behind a proxy.
struct ProxiedOperator {
    // Dropped in this order: the operator, then what it uses.
    operator: OperatorProcess,
    proxy: ApiProxy,
    team: Team,
    installation: Installation<Cluster>,
}

impl ProxiedOperator {
    async fn start() -> Self {
        let installation = Installation::without_operator().await;
        let proxy = ApiProxy::start(&installation.cluster).await;
        let operator = OperatorProcess::start_leader_behind(&proxy, &installation).await;
        let team = Team::new(&installation.cluster).await;
        Self { operator, proxy, team, installation }
    }

    async fn declare(&self, name: &str) {
        let spec = format!("domain: {}", self.team.domain(name));
        self.team.apply("CustomDomain", name, &spec).await;
    }

    async fn wait_until_settled(&self, name: &str) -> Value {
        self.team.wait_for_reason(&format!("customdomain/{name}"), "Verified", "DnsLookupFailed").await
    }

    async fn wait_for_domain_limit(&self, limit: i32) {
        eventually("the tenant has its new limit", async || {
            (self.installation.domain_limit(&self.team.tenant).await == limit).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_for_definitions_that_are_missing() {
    let installation = Installation::without_operator().await;
    installation.cluster.delete_definition("mailboxes").await;
    let (config, url) = (installation.app.config(), installation.app.database().role_url(Role::Operator));
    let operator = OperatorProcess::spawn(config, &url, installation.cluster.kubeconfig());
    eventually("readiness names the definition", async || {
        let readiness = operator.readyz().await?;
        (readiness.contains("mailboxes") && !readiness.contains("webhooks")).then_some(())
    })
    .await;
    installation.cluster.apply_definitions().await;
    operator.wait_until_ready().await;
    operator.wait_until_leader().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_each_write_that_fails() {
    let fixture = ProxiedOperator::start().await;
    let ProxiedOperator { operator, proxy, team, .. } = &fixture;
    // Each write (finalizer, status, status of another generation), and each fault.
    let faults = [(1, ApiFault::Conflict), (2, ApiFault::TooManyRequests(1)), (3, ApiFault::Internal)];
    for (nth, fault) in faults {
        let name = format!("write-{nth}");
        let before = proxy.request_count();
        proxy.fail_write(nth, fault);
        fixture.declare(&name).await;
        fixture.wait_until_settled(&name).await;
        let object = format!("customdomain/{name}");
        team.patch(&object, &json!({"spec": {"adoptionPolicy": "Never"}})).await;
        team.wait_until_observed(&object).await;
        // The API server itself may refuse another one as out of date.
        assert!(proxy.writes_since(before).iter().any(has_failed), "{name}");
        proxy.fail_write(1, fault);
        team.delete(&object).await;
    }
    assert!(operator.is_leader().await, "the same process leads");
}

fn has_failed(write: &ApiRequest) -> bool {
    write.status.is_some_and(|status| matches!(status, 409 | 429 | 500))
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_a_watch_that_breaks() {
    let fixture = ProxiedOperator::start().await;
    let is_watch = |request: &ApiRequest| request.resource == "customdomains" && request.verb == Verb::Watch;
    fixture.proxy.fail_next(is_watch, ApiFault::Expired);
    fixture.proxy.drop_watches();
    fixture.declare("after-expiry").await;
    fixture.wait_until_settled("after-expiry").await;
    // The object may come by the former watch, just before that ends.
    eventually("a watch is refused once", async || {
        let requests = fixture.proxy.requests();
        let refused = requests.iter().filter(|request| is_watch(request) && request.status == Some(410));
        (refused.count() == 1).then_some(())
    })
    .await;
}

/// The resource version of a watch may be too old at any time, as an event of the watch says. What happened
/// since shows only when all objects are listed again.
#[tokio::test(flavor = "multi_thread")]
async fn lists_all_objects_again_when_watches_expire() {
    let fixture = ProxiedOperator::start().await;
    let ProxiedOperator { proxy, team, .. } = &fixture;
    fixture.declare("deleted").await;
    fixture.wait_until_settled("deleted").await;
    let is_watch = |request: &&ApiRequest| request.group == "tempmail.dev" && request.verb == Verb::Watch;
    eventually("all kinds are watched", async || {
        let requests = proxy.requests();
        let answered = requests.iter().filter(is_watch).filter(|request| request.status.is_some());
        let watched: BTreeSet<&str> = answered.map(|request| request.resource.as_str()).collect();
        (watched.len() == tempmail_crds::all().len()).then_some(())
    })
    .await;
    let is_list = |request: &ApiRequest| request.group == "tempmail.dev" && request.verb == Verb::List;
    let before = proxy.request_count();
    proxy.hold(is_list);
    proxy.expire_watches();
    eventually("all kinds are listed again", async || {
        let lists = proxy.requests_since(before).iter().filter(|request| is_list(request)).count();
        (lists == tempmail_crds::all().len()).then_some(())
    })
    .await;
    fixture.declare("created").await;
    team.start_deletion("customdomain/deleted").await;
    team.apply_tenant("limits: {customDomains: 6}").await;
    let is_known = proxy.writes_since(before).iter().any(|write| write.name.as_deref() == Some("created"));
    assert!(!is_known, "the watches are still open");
    proxy.release();
    fixture.wait_until_settled("created").await;
    team.wait_until_deleted("customdomain/deleted").await;
    fixture.wait_for_domain_limit(6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnects_when_the_api_server_restarts() {
    let fixture = ProxiedOperator::start().await;
    let ProxiedOperator { operator, team, installation, .. } = &fixture;
    fixture.declare("before-restart").await;
    installation.cluster.restart_api_server().await;
    fixture.wait_until_settled("before-restart").await;
    fixture.declare("after-restart").await;
    fixture.wait_until_settled("after-restart").await;
    team.delete("customdomain/after-restart").await;
    team.declare_tenant("limits: {customDomains: 9}").await;
    fixture.wait_for_domain_limit(9).await;
    assert!(operator.is_leader().await, "the same process leads");
}
