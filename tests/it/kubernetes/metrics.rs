//! Metrics of the operator: conditions, the work queues, and requests to the API server.

use tempmail_runtime::config::Config;
use tempmail_tests::fleet::Role;
use tempmail_tests::kubernetes::{ApiProxy, Installation, OperatorProcess, Team};
use tempmail_tests::wait::eventually;

/// The sum of the samples of a metric that have all of these labels.
async fn sum(operator: &OperatorProcess, metric: &str, labels: &[&str]) -> f64 {
    let metrics = operator.metrics().await;
    let samples = metrics.lines().filter(|line| {
        let rest = line.strip_prefix(metric);
        rest.is_some_and(|rest| rest.starts_with('{')) && labels.iter().all(|label| line.contains(label))
    });
    samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

async fn wait_for(operator: &OperatorProcess, metric: &str, labels: &[&str], is_expected: fn(f64) -> bool) {
    eventually(&format!("{metric} {labels:?}"), || async {
        is_expected(sum(operator, metric, labels).await).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_objects_by_kind_and_condition() {
    let installation = Installation::without_operator().await;
    let operator = OperatorProcess::start_leader(&installation).await;
    let team = Team::new(&installation.cluster).await;
    team.apply("CustomDomain", "mail", &format!("domain: {}", team.domain("mail"))).await;
    team.apply_ready("ApiToken", "ci", "type: Live").await;
    let condition = "tempmail_operator_condition";
    let (tenant, domain, token) = (r#"kind="Tenant""#, r#"kind="CustomDomain""#, r#"kind="ApiToken""#);
    let (ready, yes, no) = (r#"type="Ready""#, r#"status="True""#, r#"status="False""#);
    wait_for(&operator, condition, &[tenant, ready, yes], |count| count == 1.0).await;
    wait_for(&operator, condition, &[domain, ready, no], |count| count == 1.0).await;
    wait_for(&operator, condition, &[domain, r#"type="Accepted""#, yes], |count| count == 1.0).await;
    wait_for(&operator, condition, &[token, ready, yes], |count| count == 1.0).await;
    team.delete("apitoken/ci").await;
    wait_for(&operator, condition, &[token, ready, yes], |count| count == 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn measures_the_work_queues_and_the_requests_to_the_api_server() {
    let installation = Installation::without_operator().await;
    let operator = OperatorProcess::start_leader(&installation).await;
    let team = Team::new(&installation.cluster).await;
    let name = r#"name="ApiToken""#;
    team.apply_ready("ApiToken", "ci", "type: Live").await;
    wait_for(&operator, "workqueue_adds_total", &[name], |count| count >= 1.0).await;
    wait_for(&operator, "workqueue_queue_duration_seconds_count", &[name], |count| count >= 1.0).await;
    wait_for(&operator, "workqueue_work_duration_seconds_count", &[name], |count| count >= 1.0).await;
    wait_for(&operator, "workqueue_depth", &[name], |count| count == 0.0).await;
    for (method, code) in [("GET", "200"), ("POST", "201"), ("PATCH", "200")] {
        let labels = [format!("method=\"{method}\""), format!("code=\"{code}\"")];
        let labels = labels.each_ref().map(String::as_str);
        wait_for(&operator, "rest_client_requests_total", &labels, |count| count >= 1.0).await;
    }
    let metrics = operator.metrics().await;
    for name in ["tempmail_operator_condition", "workqueue_depth", "rest_client_requests_total"] {
        assert!(metrics.contains(&format!("# HELP {name} ")), "{name} has no `# HELP` line");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_requests_that_the_api_server_does_not_answer() {
    let installation = Installation::without_operator().await;
    let proxy = ApiProxy::start(&installation.cluster).await;
    let app = &installation.app;
    let mut config = Config::clone(app.config());
    // It ends when its lease does.
    config.operator.lease_seconds = 600;
    let url = app.database().role_url(Role::Operator);
    let operator = OperatorProcess::spawn(&config, &url, &proxy.kubeconfig());
    operator.wait_until_ready().await;
    operator.wait_until_leader().await;
    proxy.cut().await;
    wait_for(&operator, "rest_client_requests_total", &[r#"code="<error>""#], |count| count >= 1.0).await;
    proxy.restore().await;
}
