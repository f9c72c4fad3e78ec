//! An outage of Postgres while objects of every kind exist, are created, changed and deleted.

mod fixture;

use std::future::Future;

use tempmail_tests::fleet::Role;
use tempmail_tests::kubernetes::{Installation, OperatorProcess, Team};
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;

use self::fixture::{BEFORE, OutageFixture};
use super::object_kinds::KINDS;

#[tokio::test(flavor = "multi_thread")]
async fn changes_no_condition_during_an_outage_and_catches_up_after_it() {
    survives_an_outage(async || {}).await;
}

/// Postgres is unreachable until each change was tried, and for as long as `meanwhile` lasts.
async fn survives_an_outage<F: Future<Output = ()>>(meanwhile: impl FnOnce() -> F) {
    let installation = Installation::without_operator().await;
    let postgres = PostgresProxy::start().await;
    let url = installation.app.database().role_url_through(Role::Operator, Some(postgres.port()));
    let kubeconfig = installation.cluster.kubeconfig();
    let operator = OperatorProcess::spawn(installation.app.config(), &url, kubeconfig);
    operator.wait_until_ready().await;
    let team = Team::with_spec(&installation.cluster, "limits: {webhooks: 4}").await;
    let fixture = OutageFixture { installation: &installation, team: &team };
    fixture.create_objects(&BEFORE).await;
    let (conditions, secrets) = (fixture.conditions().await, fixture.secrets().await);
    let rows = fixture.rows_of("goes").await;

    postgres.cut();
    fixture.create_change_and_delete().await;
    meanwhile().await;
    wait_until_each_kind_was_tried(&operator).await;
    assert_eq!(fixture.conditions().await, conditions);
    assert_eq!(fixture.secrets().await, secrets);
    fixture.assert_nothing_is_carried_out().await;
    team.wait_for_event("PostgresUnavailable").await;
    operator.wait_for_log(team.namespace.name()).await;
    eventually("the operator is not ready", || async { (!operator.is_ready().await).then_some(()) }).await;

    postgres.restore();
    for (kind, row) in KINDS.iter().zip(rows) {
        fixture.wait_until_settled(kind, "comes").await;
        fixture.wait_until_changed(kind).await;
        fixture.wait_until_deleted(kind, row).await;
    }
    let after = fixture.conditions_of(&BEFORE[..2]).await;
    assert!(
        after.iter().all(|of_object| conditions.contains(of_object)),
        "{after:#?}\nnot in {conditions:#?}"
    );
    fixture.assert_secrets_after(&secrets).await;
    assert!(operator.is_leader().await, "the same process leads");
}

/// Returns when the creation, the change and the deletion of an object of each kind failed for want of
/// Postgres.
async fn wait_until_each_kind_was_tried(operator: &OperatorProcess) {
    for kind in KINDS {
        let label = format!("kind=\"{}\"", kind.name);
        eventually(&format!("failures are counted, {label}"), async || {
            let metrics = operator.metrics().await;
            let lines = metrics.lines().filter(|line| {
                line.starts_with("tempmail_operator_reconcile_errors_total")
                    && line.contains(&label)
                    && line.contains("reason=\"PostgresUnavailable\"")
            });
            let failures: f64 = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum();
            (failures >= 3.0).then_some(())
        })
        .await;
    }
}

/// An outage that is long enough for every retry and timeout.
mod chaos {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::survives_an_outage;

    const OUTAGE: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: takes 3 minutes"]
    async fn changes_no_condition_during_an_outage_of_a_minute_and_catches_up_after_it() {
        survives_an_outage(async || sleep(OUTAGE).await).await;
    }
}
