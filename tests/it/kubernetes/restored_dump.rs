//! A database that is restored into another server: the operator reconciles each object once, and then those that change.

use sqlx::PgPool;
use tempmail_tests::CommandOutput;
use tempmail_tests::fleet::Role;
use tempmail_tests::kubernetes::{Installation, OperatorProcess, Team};
use tempmail_tests::postgres::DedicatedPostgres;
use tempmail_tests::wait::eventually;

/// Domains whose checks are in the feed of changes, and changes afterwards, each of which a poll of its own finds.
const DOMAINS: u32 = 10;
const CHANGES: u32 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn reconciles_only_what_changes_after_a_dump_was_restored_into_another_server() {
    let installation = Installation::without_operator().await;
    let (app, kubeconfig) = (&installation.app, installation.cluster.kubeconfig());
    let operator = OperatorProcess::start_leader(&installation).await;
    let team = Team::new(&installation.cluster).await;
    // More than the other server has used.
    app.database().use_transaction_ids().await;
    for number in 0..DOMAINS {
        let spec = format!("domain: {}", team.domain(&format!("d{number}")));
        team.apply("CustomDomain", &format!("d{number}"), &spec).await;
    }
    for number in 0..DOMAINS {
        team.wait_for_reason(&format!("customdomain/d{number}"), "Verified", "DnsLookupFailed").await;
    }
    operator.terminate().await;

    let other = DedicatedPostgres::start().await;
    drop(other.database().await);
    let restored = other.restore(&app.database().dump().await).await;
    let in_feed = "SELECT count(DISTINCT subject) FROM change JOIN domain ON domain.id = subject";
    let in_feed: i64 = sqlx::query_scalar(in_feed).fetch_one(&restored.pool()).await.unwrap();
    assert_eq!(in_feed, i64::from(DOMAINS));
    let url = restored.url();
    CommandOutput::run(&["database", "restored"], &[("TEMPMAIL_POSTGRES__URL", &url)]).await.success();

    let operator = OperatorProcess::spawn(app.config(), &restored.role_url(Role::Operator), kubeconfig);
    operator.wait_until_ready().await;
    operator.wait_until_leader().await;
    eventually("all domains are reconciled", || async {
        (reconciliations(&operator).await >= DOMAINS).then_some(())
    })
    .await;
    change(&restored.pool(), &operator, 0).await;
    let settled = reconciliations(&operator).await;
    for number in 1..=CHANGES {
        change(&restored.pool(), &operator, number).await;
    }
    let more = reconciliations(&operator).await - settled;
    assert!(more < DOMAINS, "{more} reconciliations for {CHANGES} changes");
}

/// Changes what the object of one domain shows, and returns when it is reconciled because of that.
async fn change(pool: &PgPool, operator: &OperatorProcess, number: u32) {
    let before = reconciliations(operator).await;
    let statement = "UPDATE domain SET deadline = deadline + interval '1 second' WHERE name LIKE 'd0.%'";
    assert_eq!(sqlx::query(statement).execute(pool).await.unwrap().rows_affected(), 1);
    eventually(&format!("the change {number} is found"), || async {
        (reconciliations(operator).await > before).then_some(())
    })
    .await;
}

/// How many reconciliations of CustomDomains ended.
async fn reconciliations(operator: &OperatorProcess) -> u32 {
    let metrics = operator.metrics().await;
    let of_domains = metrics.lines().filter(|line| {
        line.starts_with("tempmail_operator_reconciles_total{") && line.contains("kind=\"CustomDomain\"")
    });
    of_domains.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u32>().ok()).sum()
}
