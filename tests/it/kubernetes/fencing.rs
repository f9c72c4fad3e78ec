//! Of several operators one leads, and what a former one still does changes nothing.

use std::future::Future;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{Patch, PatchParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_store::{ResourceIdentity, ResourceKind, Store, StoreError};
use tempmail_tests::kubernetes::{ApiProxy, Cluster, OperatorProcess, Team, World};
use tempmail_tests::wait::eventually;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn one_operator_leads_and_a_former_one_changes_nothing() {
    let world = World::without_operator().await;
    let team = {
        let first = operator(&world).await;
        let team = Team::with(&world.cluster, "").await;
        the_leader_gives_its_lease_back_when_it_is_told_to_stop(&world, &first).await;
        team
    };
    another_takes_over_when_the_leader_is_killed(&world).await;
    whoever_loses_its_lease_ends(&world, &team).await;
    an_outage_longer_than_the_lease_is_borne(&world, &team).await;
    a_paused_leader_that_goes_on_changes_nothing(&world).await;
    a_write_that_was_under_way_changes_nothing(&world).await;
    every_statement_of_a_former_leader_is_refused(&world).await;
}

async fn the_leader_gives_its_lease_back_when_it_is_told_to_stop(
    world: &World<Cluster>,
    leader: &OperatorProcess,
) {
    assert!(lease(world).await.holder_identity.is_some());
    let ended = leader.terminate().await;
    assert!(ended.status.success(), "{:?}\n{}", ended.status, leader.log());
    assert_eq!(lease(world).await.holder_identity, None);
}

async fn another_takes_over_when_the_leader_is_killed(world: &World<Cluster>) {
    let first = operator(world).await;
    let second = OperatorProcess::start(&world.app, world.cluster.kubeconfig()).await;
    assert!(!second.leads().await, "both lead");
    first.kill().await;
    second.comes_to_lead().await;
    Team::with(&world.cluster, "").await;
}

/// The time of this machine, which leases go by.
fn now() -> Timestamp {
    SystemClock::default().now()
}

async fn whoever_loses_its_lease_ends(world: &World<Cluster>, team: &Team<'_>) {
    let former = operator(world).await;
    let next = OperatorProcess::start(&world.app, world.cluster.kubeconfig()).await;
    let stolen = json!({"spec": {
        "holderIdentity": "thief", "renewTime": format!("{:.6}", now()), "leaseDurationSeconds": 4,
    }});
    let leases = leases(world);
    let patch = Patch::Merge(stolen);
    leases.patch("tempmail-operator", &PatchParams::default(), &patch).await.expect("the lease is stolen");
    assert!(!former.ended().await.success());
    assert!(former.log().contains("another operator leads"), "{}", former.log());
    next.comes_to_lead().await;
    team.declare_tenant("  limits: {customDomains: 7}").await;
    next.terminate().await;
}

async fn an_outage_longer_than_the_lease_is_borne(world: &World<Cluster>, team: &Team<'_>) {
    let proxy = ApiProxy::start(&world.cluster).await;
    let alone = operator_through(world, &proxy).await;
    Team::with(&world.cluster, "").await;
    proxy.cut().await;
    eventually("the lease ends", async || {
        let lease = lease(world).await;
        let renewed = lease.renew_time.expect("somebody held it").0;
        let seconds = i64::from(lease.lease_duration_seconds.expect("it has an end"));
        (now().as_second() > renewed.as_second() + seconds + 1).then_some(())
    })
    .await;
    proxy.restore().await;
    team.declare_tenant("  limits: {customDomains: 8}").await;
    eventually("the tenant has its new limit", async || {
        let limit: i32 = sqlx::query_scalar("SELECT domain_limit FROM tenant WHERE name = $1")
            .bind(&team.tenant)
            .fetch_one(&world.app.pool)
            .await
            .expect("Postgres answers");
        (limit == 8).then_some(())
    })
    .await;
    assert!(alone.leads().await, "it is the same process, which still leads");
    alone.terminate().await;
}

/// A minute is no other than what is longer than the lease.
async fn a_paused_leader_that_goes_on_changes_nothing(world: &World<Cluster>) {
    let proxy = ApiProxy::start(&world.cluster).await;
    let paused = operator_through(world, &proxy).await;
    let team = Team::with(&world.cluster, "").await;
    let next = OperatorProcess::start(&world.app, world.cluster.kubeconfig()).await;
    paused.signal(Signal::SIGSTOP);
    next.comes_to_lead().await;
    declare_domains(&team).await;
    changes_nothing(world, &proxy, async || {
        paused.signal(Signal::SIGCONT);
        assert!(!paused.ended().await.success(), "it goes on");
    })
    .await;
    next.terminate().await;
}

async fn a_write_that_was_under_way_changes_nothing(world: &World<Cluster>) {
    let proxy = ApiProxy::start(&world.cluster).await;
    let former = operator_through(world, &proxy).await;
    let team = Team::with(&world.cluster, "").await;
    let next = OperatorProcess::start(&world.app, world.cluster.kubeconfig()).await;
    let asked = proxy.asked();
    proxy.hold(|request| request.is_write());
    declare_domains_without_waiting(&team).await;
    eventually("a write is under way", async || (!proxy.writes_since(asked).is_empty()).then_some(())).await;
    next.comes_to_lead().await;
    declare_domains(&team).await;
    changes_nothing(world, &proxy, async || {
        proxy.release();
        assert!(!former.ended().await.success(), "it goes on");
    })
    .await;
    // It was refused, and not just forgotten.
    assert!(proxy.writes_since(asked).iter().any(|write| write.status == Some(409)));
    next.terminate().await;
}

async fn every_statement_of_a_former_leader_is_refused(world: &World<Cluster>) {
    let store = Store::connect(&world.app.database().url(), 1, "tempmail tests").expect("our own URL is one");
    let former = store.take_epoch().await.expect("Postgres answers");
    let epoch = store.take_epoch().await.expect("Postgres answers");
    let uid = Uuid::new_v4();
    let identity = ResourceIdentity {
        uid,
        kind: ResourceKind::CustomDomain,
        namespace: Some("default".to_owned()),
        name: "ours".to_owned(),
        retained: false,
    };
    store.record_resource(epoch, Uuid::new_v4(), &identity).await.expect("it leads");
    let now = now();
    let fenced = [
        store.check_epoch(former).await,
        store.record_resource(former, Uuid::new_v4(), &identity).await,
        store.record_missing_resource(former, uid, Some(now)).await,
        store.withhold_custom_domain(former, uid).await,
        store.restart_custom_domain(former, uid, "now", now, now).await,
        store.release_custom_domain(former, uid, false, now).await,
        store.release_tenant(former, uid, false, now, 31).await,
    ];
    for answer in fenced {
        assert!(matches!(answer, Err(StoreError::Fenced)), "{answer:?}");
    }
    store.check_epoch(epoch).await.expect("it leads");
}

/// Carries out `act`, during which nothing comes of what is asked for through `proxy`.
async fn changes_nothing<F: Future<Output = ()>>(
    world: &World<Cluster>,
    proxy: &ApiProxy,
    act: impl FnOnce() -> F,
) {
    let before = rows(world).await;
    let asked = proxy.requests().iter().filter(|request| request.status.is_some()).count();
    act().await;
    let done: Vec<_> =
        proxy.requests().into_iter().filter(|request| request.status.is_some()).skip(asked).collect();
    let written: Vec<_> = done
        .iter()
        .filter(|request| request.is_write() && request.status.is_some_and(|status| status < 300))
        .filter(|request| request.resource != "leases")
        .collect();
    assert!(written.is_empty(), "{written:#?}");
    assert_eq!(rows(world).await, before);
}

/// All that operators write, but for the looks at records, which anybody may do.
async fn rows(world: &World<Cluster>) -> Value {
    let statement = "
        SELECT jsonb_build_array(
            (SELECT epoch FROM operator),
            (SELECT jsonb_agg(to_jsonb(r) ORDER BY uid) FROM resource r),
            (SELECT jsonb_agg(to_jsonb(t) ORDER BY id) FROM tenant t),
            (SELECT jsonb_agg(to_jsonb(d) - 'checked_at' - 'next_check_at' - 'claimed_until' ORDER BY id) FROM domain d)
        )::text";
    let rows: String =
        sqlx::query_scalar(statement).fetch_one(&world.app.pool).await.expect("Postgres answers");
    serde_json::from_str(&rows).expect("it is JSON")
}

const DOMAINS: [&str; 3] = ["one", "two", "three"];

async fn declare_domains(team: &Team<'_>) {
    declare_domains_without_waiting(team).await;
    for label in DOMAINS {
        team.wait_for_reason(&format!("customdomain/{label}"), "Verified", "DnsLookupFailed").await;
    }
}

async fn declare_domains_without_waiting(team: &Team<'_>) {
    for label in DOMAINS {
        let spec = format!("domain: {}", team.domain(label));
        team.apply("CustomDomain", label, &spec).await.expect("it is taken");
    }
}

/// One that leads.
async fn operator(world: &World<Cluster>) -> OperatorProcess {
    let operator = OperatorProcess::start(&world.app, world.cluster.kubeconfig()).await;
    operator.comes_to_lead().await;
    operator
}

async fn operator_through(world: &World<Cluster>, proxy: &ApiProxy) -> OperatorProcess {
    let operator = OperatorProcess::start(&world.app, &proxy.kubeconfig()).await;
    operator.comes_to_lead().await;
    operator
}

fn leases(world: &World<Cluster>) -> Api<Lease> {
    Api::default_namespaced(world.cluster.client())
}

async fn lease(world: &World<Cluster>) -> LeaseSpec {
    let lease = leases(world).get("tempmail-operator").await.expect("there is a lease");
    lease.spec.expect("a lease says something")
}
