//! The attempts that are recorded, and their partitions.

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx as _;
use serde_json::{Value, json};
use tempmail_model::clock::{Clock as _, TestClock};
use tempmail_tests::App;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;

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
