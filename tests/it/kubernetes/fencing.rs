//! Of several operators one leads, and what a former one still does changes nothing.

mod statements;

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{Patch, PatchParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_tests::kubernetes::{ApiProxy, ApiRequest, Cluster, OperatorProcess, Team, Verb, World};
use tempmail_tests::rows::SYSTEM_DOMAIN;
use tempmail_tests::wait::eventually;
use tokio::time::{Instant, sleep_until};

/// What the leader stands still for: far longer than its lease.
const PAUSE: Duration = Duration::from_secs(60);
/// The kinds whose objects have Secrets.
const WITH_SECRETS: [&str; 3] = ["webhook", "apitoken", "mailbox"];

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

/// It stands still in the middle of its work: it has seen that there are no rows, and waits for the Secrets.
async fn a_paused_leader_that_goes_on_changes_nothing(world: &World<Cluster>) {
    let proxy = ApiProxy::start(&world.cluster).await;
    let paused = operator_through(world, &proxy).await;
    let team = Team::with(&world.cluster, "  limits: {webhooks: 2}").await;
    let reads_secret = |request: &ApiRequest| request.resource == "secrets" && request.verb == Verb::Get;
    let asked = proxy.asked();
    proxy.hold(reads_secret);
    declare_without_waiting(&team, "stays").await;
    declare_without_waiting(&team, "goes").await;
    eventually("it looks at each Secret", async || {
        let looks = proxy.requests()[asked..].iter().filter(|request| reads_secret(request)).count();
        (looks == 2 * WITH_SECRETS.len()).then_some(())
    })
    .await;
    paused.signal(Signal::SIGSTOP);
    let goes_on = Instant::now() + PAUSE;
    let next = OperatorProcess::start(&world.app, world.cluster.kubeconfig()).await;
    next.comes_to_lead().await;
    declare(&team, "stays").await;
    declare(&team, "goes").await;
    for kind in WITH_SECRETS {
        rotate(&team, &format!("{kind}/stays")).await;
        team.delete(&format!("{kind}/goes")).await;
    }
    team.delete("customdomain/goes").await;
    // Nothing is waited for: so long a pause is what is tried here.
    sleep_until(goes_on).await;
    changes_nothing(world, &proxy, async || {
        proxy.release();
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
    declare_without_waiting(&team, "ours").await;
    eventually("a write is under way", async || (!proxy.writes_since(asked).is_empty()).then_some(())).await;
    next.comes_to_lead().await;
    declare(&team, "ours").await;
    changes_nothing(world, &proxy, async || {
        proxy.release();
        assert!(!former.ended().await.success(), "it goes on");
    })
    .await;
    // It was refused, and not just forgotten.
    assert!(proxy.writes_since(asked).iter().any(|write| write.status == Some(409)));
    next.terminate().await;
}

/// Carries out `act`, during which nothing comes of what is asked for through `proxy`.
async fn changes_nothing<F: Future<Output = ()>>(
    world: &World<Cluster>,
    proxy: &ApiProxy,
    act: impl FnOnce() -> F,
) {
    let (before, asked) = (rows(world).await, proxy.requests());
    act().await;
    // What was held is answered only now.
    let is_answered_already = |index: usize| asked.get(index).is_some_and(|request| request.status.is_some());
    let requests = proxy.requests().into_iter().enumerate();
    let written: Vec<_> = requests
        .filter(|&(index, _)| !is_answered_already(index))
        .map(|(_, request)| request)
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
            (SELECT jsonb_agg(to_jsonb(d) - 'check_requested_at' - 'next_check_at' - 'claimed_until' ORDER BY id) FROM domain d),
            (SELECT jsonb_agg(to_jsonb(w) ORDER BY id) FROM webhook w),
            (SELECT jsonb_agg(to_jsonb(k) ORDER BY id) FROM api_token k),
            (SELECT jsonb_agg(to_jsonb(b) ORDER BY id) FROM mailbox b)
        )::text";
    let rows: String =
        sqlx::query_scalar(statement).fetch_one(&world.app.pool).await.expect("Postgres answers");
    serde_json::from_str(&rows).expect("it is JSON")
}

/// Declares an object of each kind of a tenant under this name, and waits until they are as they should be.
async fn declare(team: &Team<'_>, name: &str) {
    declare_without_waiting(team, name).await;
    team.wait_for_reason(&format!("customdomain/{name}"), "Verified", "DnsLookupFailed").await;
    for kind in WITH_SECRETS {
        team.wait(&format!("{kind}/{name}"), "Ready").await;
    }
}

async fn declare_without_waiting(team: &Team<'_>, name: &str) {
    let objects = [
        ("CustomDomain", format!("domain: {}", team.domain(name))),
        ("Webhook", "url: 'https://hooks.example.com/mail'".to_owned()),
        ("ApiToken", "type: Pro".to_owned()),
        ("Mailbox", format!("address: {}-{name}@{SYSTEM_DOMAIN}", team.tenant)),
    ];
    for (kind, spec) in objects {
        team.apply(kind, name, &spec).await.expect("it is taken");
    }
}

/// Has the secret of an object made anew, and waits for it.
async fn rotate(team: &Team<'_>, object: &str) {
    team.kubectl(&["annotate", object, "tempmail.dev/rotate-requested-at=now"])
        .await
        .expect("it is annotated");
    let handled = "--for=jsonpath={.status.lastHandledRotateAt}=now";
    team.kubectl(&["wait", object, handled, "--timeout=120s"]).await.expect("the secret is made anew");
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
