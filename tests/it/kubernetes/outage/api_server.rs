//! An API server that goes away, or answers with faults.

use serde_json::Value;
use tempmail_store::ResourceKind;
use tempmail_tests::kubernetes::{ApiProxy, ApiRequest, Cluster, Fault, OperatorProcess, Team, Verb, World};
use tempmail_tests::wait::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_api_server_are_tried_again_until_all_is_settled() {
    let world = World::without_operator().await;
    let proxy = ApiProxy::start(&world.cluster).await;
    let operator = definitions_may_come_later(&world, &proxy).await;
    let team = Team::with(&world.cluster, "").await;
    each_write_may_fail(&proxy, &team).await;
    a_watch_that_breaks_is_begun_anew(&proxy, &team).await;
    nothing_is_lost_where_a_watch_expires(&world, &proxy, &team).await;
    the_api_server_may_go_and_come(&world, &team).await;
    assert!(operator.leads().await, "it is the same process, which still leads");
}

async fn definitions_may_come_later(world: &World<Cluster>, proxy: &ApiProxy) -> OperatorProcess {
    world.cluster.kubectl(&["delete", "crd", "mailboxes.tempmail.dev"]).await.expect("it goes");
    let (config, url) = (world.app.config(), world.app.database().url());
    let operator = OperatorProcess::begin(config, &url, &proxy.kubeconfig(), &[]);
    eventually("it says what is missing", async || {
        let said = operator.readyz().await?;
        (said.contains("mailboxes") && !said.contains("webhooks")).then_some(())
    })
    .await;
    let definitions = tempmail_crds::manifests().expect("the definitions can be written");
    world.cluster.apply(&definitions).await.expect("they are taken");
    operator.wait_until_ready().await;
    operator.comes_to_lead().await;
    operator
}

async fn each_write_may_fail(proxy: &ApiProxy, team: &Team<'_>) {
    let faults =
        [("conflict", Fault::Conflict), ("busy", Fault::TooManyRequests(1)), ("broken", Fault::Internal)];
    for (label, fault) in faults {
        // Finalizer, status, status with what was found.
        for nth in 1..=3 {
            let name = format!("{label}-{nth}");
            let asked = proxy.asked();
            proxy.fail_write(nth, fault);
            declare(team, &name).await;
            settled(team, &name).await;
            let failed = proxy.writes_since(asked).iter().filter(|write| has_failed(write)).count();
            assert_eq!(failed, 1, "{name}");
            proxy.fail_write(1, fault);
            team.kubectl(&["delete", &format!("customdomain/{name}"), "--wait=false"])
                .await
                .expect("it is deleted");
            gone(team, &name).await;
        }
    }
}

fn has_failed(write: &ApiRequest) -> bool {
    write.status.is_some_and(|status| matches!(status, 409 | 429 | 500))
}

async fn a_watch_that_breaks_is_begun_anew(proxy: &ApiProxy, team: &Team<'_>) {
    let is_watch = |request: &ApiRequest| request.resource == "customdomains" && request.verb == Verb::Watch;
    let refused = || {
        let requests = proxy.requests();
        requests.iter().filter(|one| is_watch(one) && one.status == Some(410)).count()
    };
    proxy.fail_next(is_watch, Fault::Expired);
    proxy.drop_watches();
    declare(team, "after-expiry").await;
    settled(team, "after-expiry").await;
    assert_eq!(refused(), 1);
}

/// What a watch would go on from may be forgotten at any time, which an event of it says. Nobody tells then
/// what happened until all objects are read anew.
async fn nothing_is_lost_where_a_watch_expires(world: &World<Cluster>, proxy: &ApiProxy, team: &Team<'_>) {
    declare(team, "deleted").await;
    settled(team, "deleted").await;
    let is_list = |request: &ApiRequest| request.group == "tempmail.dev" && request.verb == Verb::List;
    let asked = proxy.asked();
    proxy.hold(is_list);
    proxy.expire_watches();
    eventually("all kinds are asked for anew", async || {
        let lists = proxy.requests()[asked..].iter().filter(|request| is_list(request)).count();
        (lists == ResourceKind::ALL.len()).then_some(())
    })
    .await;
    declare(team, "made").await;
    team.kubectl(&["delete", "customdomain/deleted", "--wait=false"]).await.expect("it is deleted");
    team.apply_tenant("  limits: {customDomains: 6}").await;
    let is_known = proxy.writes_since(asked).iter().any(|write| write.name.as_deref() == Some("made"));
    assert!(!is_known, "the watches are still open");
    proxy.release();
    settled(team, "made").await;
    gone(team, "deleted").await;
    has_limit(world, team, 6).await;
}

async fn the_api_server_may_go_and_come(world: &World<Cluster>, team: &Team<'_>) {
    declare(team, "before-restart").await;
    world.cluster.restart_api_server().await;
    settled(team, "before-restart").await;
    declare(team, "after-restart").await;
    settled(team, "after-restart").await;
    team.delete("customdomain/after-restart").await;
    team.declare_tenant("  limits: {customDomains: 9}").await;
    has_limit(world, team, 9).await;
}

async fn declare(team: &Team<'_>, name: &str) {
    let spec = format!("domain: {}", team.domain(name));
    team.apply("CustomDomain", name, &spec).await.expect("it is taken");
}

async fn settled(team: &Team<'_>, name: &str) -> Value {
    team.wait_for_reason(&format!("customdomain/{name}"), "Verified", "DnsLookupFailed").await
}

async fn gone(team: &Team<'_>, name: &str) {
    let object = format!("customdomain/{name}");
    eventually("the object is gone", async || team.kubectl(&["get", &object]).await.err().map(drop)).await;
}

async fn has_limit(world: &World<Cluster>, team: &Team<'_>, limit: i32) {
    eventually("the tenant has its new limit", async || {
        let told: i32 = sqlx::query_scalar("SELECT domain_limit FROM tenant WHERE name = $1")
            .bind(&team.tenant)
            .fetch_one(&world.app.pool)
            .await
            .expect("Postgres answers");
        (told == limit).then_some(())
    })
    .await;
}
