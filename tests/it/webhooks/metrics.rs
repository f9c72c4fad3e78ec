//! Metrics of webhooks.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::rows::{make_webhooks_due, set_webhook_failures};
use tempmail_tests::wait::{DEADLINE, eventually};
use tempmail_tests::{Fleet, Receiver};

const BOX: &str = "name@inbox.localhost";

/// Waits until a metric of the worker has such a value; a missing one is 0.
async fn wait_for_metric(fleet: &Fleet, name: &str, is_expected: impl Fn(f64) -> bool) {
    eventually(name, || async {
        let metrics = fleet.worker(0).metrics().await;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = line.map_or(0.0, |number| number.parse().unwrap());
        is_expected(value).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::float_cmp, reason = "the values are counts")]
async fn counts_attempts_claimed_and_pending_webhooks() {
    let fleet = Fleet::builder().apis(1).ingests(1).receivers();
    // A request is in flight until the backlog has been measured.
    let fleet = fleet.config(|config| config.webhooks.timeout_seconds = DEADLINE.as_secs()).start().await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url(), "events": ["email.received"] });
    let create = fleet.request(0, Method::POST, "/pro/api/webhooks").bearer(&fleet.tenant.pro).json(&body);
    create.send().await.expect(201);
    fleet.mailbox(Some(&fleet.tenant.pro), BOX).await;

    for number in 0..3 {
        fleet.deliver(0, BOX, &number.to_string()).await;
    }
    wait_for_metric(&fleet, "tempmail_webhook_attempts_total{result=\"success\"}", |count| count == 3.0)
        .await;
    wait_for_metric(&fleet, "tempmail_webhook_attempt_seconds_count", |count| count == 3.0).await;
    wait_for_metric(&fleet, "tempmail_webhook_requests_in_flight", |count| count == 0.0).await;
    wait_for_metric(&fleet, "tempmail_webhooks_claimed", |count| count == 0.0).await;

    // An event whose tenth attempt fails.
    receiver.react_to_text_with("refused", Reaction::Status(500));
    fleet.deliver(0, BOX, "refused").await;
    let nine = "UPDATE webhook_event SET attempts = 9, due_at = '-infinity' WHERE attempts BETWEEN 1 AND 8";
    eventually("the event was tried nine times", || async {
        let tried = sqlx::query(nine).execute(&fleet.pool).await.expect("events can be changed");
        (tried.rows_affected() > 0).then_some(())
    })
    .await;
    wait_for_metric(&fleet, "tempmail_webhook_events_given_up_total", |count| count == 1.0).await;

    // The tenth failure in a row is in flight until the test releases it. The backlog is measured every 15 s:
    // the response has to wait for that.
    set_webhook_failures(&fleet.pool, 9).await;
    make_webhooks_due(&fleet.pool).await;
    receiver.react_with(Reaction::HeldStatus(500));
    fleet.deliver(0, BOX, "held").await;
    wait_for_metric(&fleet, "tempmail_webhook_requests_in_flight", |count| count == 1.0).await;
    wait_for_metric(&fleet, "tempmail_webhooks_claimed", |count| count == 1.0).await;
    wait_for_metric(&fleet, "tempmail_webhooks_pending", |count| count == 1.0).await;
    wait_for_metric(&fleet, "tempmail_webhook_oldest_pending_seconds", |age| age > 0.0).await;
    receiver.release_held();
    wait_for_metric(&fleet, "tempmail_webhook_attempts_total{result=\"http_status\"}", |count| count >= 3.0)
        .await;
    wait_for_metric(&fleet, "tempmail_webhooks_disabled_total", |count| count == 1.0).await;
    for name in [
        "tempmail_webhook_requests_in_flight",
        "tempmail_webhooks_claimed",
        "tempmail_webhooks_pending",
        "tempmail_webhook_oldest_pending_seconds",
    ] {
        wait_for_metric(&fleet, name, |count| count == 0.0).await;
    }
}
