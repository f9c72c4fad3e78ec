//! What `/metrics` of a worker tells of webhooks.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Receiver};

const BOX: &str = "name@inbox.localhost";

/// Waits until a sample of the worker's metrics has a value that fits; one that is not there is 0.
async fn is(fleet: &Fleet, sample: &str, fits: impl Fn(f64) -> bool) {
    eventually(&format!("{sample} is as it should be"), || async {
        let metrics = fleet.worker(0).metrics().await;
        let line = metrics.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        let found = line.map_or(0.0, |number| number.parse().unwrap());
        fits(found).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::float_cmp, reason = "they count")]
async fn attempts_webhooks_and_what_waits_are_measured() {
    let fleet = Fleet::builder().apis(1).ingests(1).receivers().start().await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url(), "events": ["email.received"] });
    let made = fleet.request(0, Method::POST, "/pro/api/webhooks").bearer(&fleet.tenant.pro).json(&body);
    made.send().await.expect(201);
    fleet.mailbox(Some(&fleet.tenant.pro), BOX).await;

    for number in 0..3 {
        fleet.deliver(0, BOX, &number.to_string()).await;
    }
    is(&fleet, "tempmail_webhook_attempts_total{result=\"success\"}", |count| count == 3.0).await;
    is(&fleet, "tempmail_webhook_attempt_seconds_count", |count| count == 3.0).await;
    is(&fleet, "tempmail_webhook_requests_in_flight", |count| count == 0.0).await;
    is(&fleet, "tempmail_webhooks_in_hand", |count| count == 0.0).await;

    // One that hangs is under way for 30 s, and then the tenth in a row.
    sqlx::query("UPDATE webhook SET failure_count = 9").execute(&fleet.pool).await.unwrap();
    receiver.react_with(Reaction::Hang);
    fleet.deliver(0, BOX, "hangs").await;
    is(&fleet, "tempmail_webhook_requests_in_flight", |count| count == 1.0).await;
    is(&fleet, "tempmail_webhooks_in_hand", |count| count == 1.0).await;
    is(&fleet, "tempmail_webhooks_waiting", |count| count == 1.0).await;
    is(&fleet, "tempmail_webhook_oldest_waiting_seconds", |age| age > 0.0).await;
    is(&fleet, "tempmail_webhook_attempts_total{result=\"timeout\"}", |count| count == 1.0).await;
    is(&fleet, "tempmail_webhooks_disabled_total", |count| count == 1.0).await;
    for name in [
        "tempmail_webhook_requests_in_flight",
        "tempmail_webhooks_in_hand",
        "tempmail_webhooks_waiting",
        "tempmail_webhook_oldest_waiting_seconds",
    ] {
        is(&fleet, name, |count| count == 0.0).await;
    }
}
