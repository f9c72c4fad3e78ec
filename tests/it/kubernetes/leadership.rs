//! One of several operators leads, and a former leader changes nothing.

mod statements;

use std::future::Future;
use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{Patch, PatchParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_tests::fleet::Role;
use tempmail_tests::kubernetes::{ApiProxy, ApiRequest, Cluster, Installation, OperatorProcess, Team, Verb};
use tempmail_tests::wait::eventually;

use super::object_kinds::KINDS;

/// The kinds whose objects have Secrets.
const WITH_SECRETS: [&str; 3] = ["webhook", "apitoken", "mailbox"];
/// The lease of an operator that has to keep it while another one waits for it. It is renewed 5 s before it
/// expires, which may be too late on a busy machine: the tests are over by then.
const LEASE_SECONDS: u64 = 30;

#[tokio::test(flavor = "multi_thread")]
async fn releases_the_lease_when_it_is_terminated() {
    let installation = Installation::without_operator().await;
    let leader = OperatorProcess::start_leader(&installation).await;
    assert!(lease(&installation).await.holder_identity.is_some());
    let ended = leader.terminate().await;
    assert!(ended.status.success(), "{:?}\n{}", ended.status, leader.log());
    assert_eq!(lease(&installation).await.holder_identity, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_the_lease_under_the_name_of_its_pod() {
    let installation = Installation::without_operator().await;
    let mut config = installation.app.config().clone();
    config.operator.pod_name = "tempmail-operator-7d9f-x2x4z".to_owned();
    let database = installation.app.database().role_url(Role::Operator);
    let operator = OperatorProcess::spawn(&config, &database, installation.cluster.kubeconfig());
    operator.wait_until_ready().await;
    operator.wait_until_leader().await;
    let holder = lease(&installation).await.holder_identity;
    assert_eq!(holder.as_deref(), Some("tempmail-operator-7d9f-x2x4z"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_operator_takes_over_when_the_leader_is_killed() {
    let installation = Installation::without_operator().await;
    let kubeconfig = installation.cluster.kubeconfig();
    let first = start_with_long_lease(&installation, kubeconfig).await;
    first.wait_until_leader().await;
    let second = start_with_long_lease(&installation, kubeconfig).await;
    assert!(!second.is_leader().await, "both lead");
    first.kill().await;
    second.wait_until_leader().await;
    Team::new(&installation.cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_when_another_operator_holds_the_lease() {
    let installation = Installation::without_operator().await;
    // No other operator waits for the lease, which would get it if this one renewed it too late.
    let former = OperatorProcess::start_leader(&installation).await;
    let stolen = json!({"spec": {
        "holderIdentity": "thief", "renewTime": format!("{:.6}", now()), "leaseDurationSeconds": 30,
    }});
    let (leases, patch) = (leases(&installation), Patch::Merge(stolen));
    leases.patch("tempmail-operator", &PatchParams::default(), &patch).await.expect("the lease is stolen");
    assert!(!former.wait_for_exit().await.success());
    assert!(former.log().contains("another operator leads"), "{}", former.log());
    let _next = OperatorProcess::start_leader(&installation).await;
    Team::new(&installation.cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn needs_nothing_of_the_api_server_to_begin_once_it_leads() {
    let installation = Installation::without_operator().await;
    let proxy = ApiProxy::start(&installation.cluster).await;
    let reads_cluster = |request: &ApiRequest| request.name.as_deref() == Some("kube-system");
    proxy.hold(reads_cluster);
    let (app, kubeconfig) = (&installation.app, proxy.kubeconfig());
    let operator =
        OperatorProcess::spawn(app.config(), &app.database().role_url(Role::Operator), &kubeconfig);
    eventually("the id of the cluster is read", || async {
        proxy.requests().iter().any(reads_cluster).then_some(())
    })
    .await;
    assert!(!operator.is_leader().await, "it leads, and would end if the API server did not answer now");
    proxy.release();
    operator.wait_until_leader().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_operator_survives_an_outage_longer_than_its_lease() {
    let installation = Installation::without_operator().await;
    let proxy = ApiProxy::start(&installation.cluster).await;
    let operator = OperatorProcess::start_leader_behind(&proxy, &installation).await;
    let team = Team::new(&installation.cluster).await;
    proxy.cut().await;
    eventually("the lease expires", async || {
        let lease = lease(&installation).await;
        let renewed = lease.renew_time.expect("the lease was held").0;
        let seconds = i64::from(lease.lease_duration_seconds.expect("the lease has a duration"));
        (now().as_second() > renewed.as_second() + seconds + 1).then_some(())
    })
    .await;
    proxy.restore().await;
    team.declare_tenant("limits: {customDomains: 8}").await;
    eventually("the tenant has its new limit", async || {
        (installation.domain_limit(&team.tenant).await == 8).then_some(())
    })
    .await;
    assert!(operator.is_leader().await, "the same process leads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_leader_changes_nothing_when_it_resumes() {
    resumes_a_paused_leader(async || {}).await;
}

/// A leader is paused between reading rows and writing Secrets. Another one leads, and `meanwhile` passes
/// before the former one resumes.
async fn resumes_a_paused_leader<F: Future<Output = ()>>(meanwhile: impl FnOnce() -> F) {
    let installation = Installation::without_operator().await;
    let proxy = ApiProxy::start(&installation.cluster).await;
    let paused = OperatorProcess::start_leader_behind(&proxy, &installation).await;
    let team = Team::with_spec(&installation.cluster, "limits: {webhooks: 2}").await;
    let reads_secret = |request: &ApiRequest| request.resource == "secrets" && request.verb == Verb::Get;
    let before = proxy.request_count();
    proxy.hold(reads_secret);
    declare(&team, "stays").await;
    declare(&team, "goes").await;
    eventually("each Secret is read", async || {
        let reads = proxy.requests_since(before).iter().filter(|request| reads_secret(request)).count();
        (reads == 2 * WITH_SECRETS.len()).then_some(())
    })
    .await;
    paused.signal(Signal::SIGSTOP);
    let next = start_with_long_lease(&installation, installation.cluster.kubeconfig()).await;
    next.wait_until_leader().await;
    wait_until_settled(&team, "stays").await;
    wait_until_settled(&team, "goes").await;
    for kind in WITH_SECRETS {
        team.rotate(&format!("{kind}/stays"), "now").await;
        team.delete(&format!("{kind}/goes")).await;
    }
    team.delete("customdomain/goes").await;
    meanwhile().await;
    assert_changes_nothing(&installation, &proxy, async || {
        proxy.release();
        paused.signal(Signal::SIGCONT);
        assert!(!paused.wait_for_exit().await.success(), "it keeps running");
    })
    .await;
    assert!(next.is_leader().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_a_former_leader_started_changes_nothing() {
    let installation = Installation::without_operator().await;
    let proxy = ApiProxy::start(&installation.cluster).await;
    let former = OperatorProcess::start_leader_behind(&proxy, &installation).await;
    let team = Team::new(&installation.cluster).await;
    let before = proxy.request_count();
    proxy.hold(ApiRequest::is_write);
    declare(&team, "ours").await;
    eventually("a write is held", async || (!proxy.writes_since(before).is_empty()).then_some(())).await;
    // Nor can the former leader renew its lease.
    let next = start_with_long_lease(&installation, installation.cluster.kubeconfig()).await;
    next.wait_until_leader().await;
    wait_until_settled(&team, "ours").await;
    assert_changes_nothing(&installation, &proxy, async || {
        proxy.release();
        assert!(!former.wait_for_exit().await.success(), "it keeps running");
    })
    .await;
    eventually("the API server refuses the write", async || {
        proxy.writes_since(before).iter().any(|write| write.status == Some(409)).then_some(())
    })
    .await;
}

/// Runs `act`, and asserts that no request that passes the proxy meanwhile changes an object or a row. Events
/// change nothing: a former leader may still report a status that it wrote while it led.
async fn assert_changes_nothing<F: Future<Output = ()>>(
    installation: &Installation<Cluster>,
    proxy: &ApiProxy,
    act: impl FnOnce() -> F,
) {
    let (rows_before, requests_before) = (rows(installation).await, proxy.requests());
    act().await;
    // Requests that were held are answered only now.
    let was_answered =
        |index: usize| requests_before.get(index).is_some_and(|request| request.status.is_some());
    let requests = proxy.requests().into_iter().enumerate();
    let written: Vec<_> = requests
        .filter(|&(index, _)| !was_answered(index))
        .map(|(_, request)| request)
        .filter(|request| request.is_write() && request.status.is_some_and(|status| status < 300))
        .filter(|request| !["leases", "events"].contains(&request.resource.as_str()))
        .collect();
    assert!(written.is_empty(), "{written:#?}");
    assert_eq!(rows(installation).await, rows_before);
}

/// All rows that operators write, without the times of DNS checks, which any process may do.
async fn rows(installation: &Installation<Cluster>) -> Value {
    let statement = "
        SELECT jsonb_build_array(
            (SELECT epoch FROM operator),
            (SELECT jsonb_agg(to_jsonb(c) - 'heartbeat_at' ORDER BY id) FROM cluster c),
            (SELECT jsonb_agg(to_jsonb(r) ORDER BY uid) FROM resource r),
            (SELECT jsonb_agg(to_jsonb(t) ORDER BY id) FROM tenant t),
            (SELECT jsonb_agg(to_jsonb(d) - 'check_requested_at' - 'next_check_at' - 'claimed_until' ORDER BY id) FROM domain d),
            (SELECT jsonb_agg(to_jsonb(w) ORDER BY id) FROM webhook w),
            (SELECT jsonb_agg(to_jsonb(k) ORDER BY id) FROM api_token k),
            (SELECT jsonb_agg(to_jsonb(b) ORDER BY id) FROM mailbox b)
        )::text";
    let rows: String =
        sqlx::query_scalar(statement).fetch_one(&installation.app.pool).await.expect("Postgres answers");
    serde_json::from_str(&rows).expect("it is JSON")
}

/// Declares an object of each kind of a tenant under this name; does not wait.
async fn declare(team: &Team, name: &str) {
    for kind in KINDS.iter().filter(|kind| kind.is_namespaced) {
        kind.declare(team, name, name).await;
    }
}

/// Waits until the objects that [`declare`] declared have their final conditions.
async fn wait_until_settled(team: &Team, name: &str) {
    for kind in KINDS.iter().filter(|kind| kind.is_namespaced) {
        kind.wait_until_settled(team, name).await;
    }
}

/// Starts an operator with a lease of [`LEASE_SECONDS`], and returns when it is ready.
async fn start_with_long_lease(installation: &Installation<Cluster>, kubeconfig: &Path) -> OperatorProcess {
    let mut config = installation.app.config().clone();
    config.operator.lease_seconds = LEASE_SECONDS;
    let operator =
        OperatorProcess::spawn(&config, &installation.app.database().role_url(Role::Operator), kubeconfig);
    operator.wait_until_ready().await;
    operator
}

/// The time of this machine, which leases use.
fn now() -> Timestamp {
    SystemClock::default().now()
}

fn leases(installation: &Installation<Cluster>) -> Api<Lease> {
    Api::default_namespaced(installation.cluster.client())
}

async fn lease(installation: &Installation<Cluster>) -> LeaseSpec {
    let lease = leases(installation).get("tempmail-operator").await.expect("there is a lease");
    lease.spec.expect("a lease has a spec")
}

/// A leader that is paused for long.
mod chaos {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::resumes_a_paused_leader;

    /// Far longer than any lease, connection or request lasts.
    const PAUSE: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: takes 2 minutes"]
    async fn a_leader_that_was_paused_for_a_minute_changes_nothing_when_it_resumes() {
        resumes_a_paused_leader(async || sleep(PAUSE).await).await;
    }
}
