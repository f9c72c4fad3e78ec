//! The attempts that are recorded, their partitions, and the metrics that count them.

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::{Clock as _, TestClock};
use tempmail_tests::receiver::Reaction;
use tempmail_tests::rows::{make_webhooks_due, set_webhook_failures};
use tempmail_tests::wait::{DEADLINE, eventually};
use tempmail_tests::{App, Fleet, Receiver};

use super::{
    CreatedWebhook, app_and_receiver, create_webhook, list_attempts, wait_for_failures, wait_until_delivered,
};

const BOX: &str = "name@inbox.localhost";

const DAY: i64 = 24 * 60 * 60;

/// Days that have a partition, by the Unix time at which they begin.
async fn partitioned_days(app: &App) -> Vec<i64> {
    sqlx::query_scalar(
        "SELECT substring(relname FROM '[0-9]+$')::bigint FROM pg_class
         WHERE relkind = 'r' AND relname ~ '^webhook_delivery_[0-9]+$' ORDER BY 1",
    )
    .fetch_all(&app.pool)
    .await
    .unwrap()
}

/// The day of a clock, as the Unix time at which it begins.
fn today(clock: &TestClock) -> i64 {
    clock.now().as_second().div_euclid(DAY) * DAY
}

/// Waits until this number of attempts is recorded, and returns them.
async fn wait_for_attempts(app: &App, webhook: &CreatedWebhook, count: usize) -> Vec<Value> {
    eventually(&format!("{count} attempts are recorded"), || async {
        let attempts = list_attempts(app, webhook).await;
        (attempts.len() == count).then_some(attempts)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn records_every_attempt_with_its_number_for_the_event() {
    let (app, receiver) = app_and_receiver().await;
    let webhook = create_webhook(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    receiver.react_next_with([500, 404].map(Reaction::Status));
    app.deliver(BOX, "first", "").await;
    wait_for_failures(&app, &webhook, 1).await;
    // Another event is tried at once.
    app.deliver(BOX, "second", "").await;
    wait_for_failures(&app, &webhook, 2).await;
    app.clock.advance(SignedDuration::from_secs(36));
    wait_until_delivered(&app).await;
    let attempts = wait_for_attempts(&app, &webhook, 4).await;
    let requests = receiver.requests();
    let expected = [
        (204, json!(null), 2),
        (204, json!(null), 2),
        (404, json!("http_status"), 1),
        (500, json!("http_status"), 1),
    ];
    for ((attempt, request), (status, error, number)) in
        attempts.iter().zip(requests.iter().rev()).zip(expected)
    {
        assert_eq!(
            (&attempt["status_code"], &attempt["error"], &attempt["attempt"], &attempt["event_id"]),
            (&json!(status), &error, &json!(number), &json!(request.header("x-webhook-id")))
        );
    }
    let times: Vec<_> = attempts.iter().map(|attempt| attempt["created_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "newest first: {times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_attempts_for_a_week_and_drops_older_ones_by_the_day() {
    let started = today(&TestClock::default());
    let (app, receiver) = app_and_receiver().await;
    let webhook = create_webhook(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    app.worker_pass().await;
    // The day of the worker's first pass, which may be over by now.
    let first = partitioned_days(&app).await[0];
    assert!((started..=today(&app.clock)).contains(&first), "{first} is before {started}");
    for day in 0..12 {
        // A partition that is in use is dropped in a later pass.
        eventually("there are the days from a week ago until tomorrow", || async {
            app.worker_pass().await;
            let (days, today) = (partitioned_days(&app).await, today(&app.clock));
            let oldest = first.max(today - 7 * DAY);
            let expected: Vec<_> =
                (0..).map(|day| oldest + day * DAY).take_while(|day| *day <= today + DAY).collect();
            (days == expected).then_some(())
        })
        .await;
        app.deliver(BOX, &day.to_string(), "").await;
        // Each is listed for seven days, and no longer at the same time of the day a week later.
        wait_for_attempts(&app, &webhook, 7.min(day + 1)).await;
        app.advance_hours(24);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_missing_partition_to_record_an_attempt() {
    let (app, receiver) = app_and_receiver().await;
    let webhook = create_webhook(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    app.advance_hours(24 * 40);
    let before = app.clock.now() + SignedDuration::from_hours(72);
    // It fails while the running worker creates partitions.
    eventually("the partitions are dropped", || async {
        let dropped = sqlx::query("SELECT drop_delivery_partitions($1)").bind(before.to_sqlx());
        dropped.execute(&app.pool).await.ok()
    })
    .await;
    app.deliver(BOX, "hello", "").await;
    wait_for_attempts(&app, &webhook, 1).await;
    assert!(partitioned_days(&app).await.contains(&today(&app.clock)));
    assert_eq!(receiver.request_count(), 1, "recording it again does not send it again");
}

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
