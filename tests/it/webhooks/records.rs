//! The attempts that are recorded, and the partitions that they are in.

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx as _;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_tests::App;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;

use super::{Webhook, deliveries, has_failed, nothing_waits, webhook_to, with_receiver};

const BOX: &str = "name@inbox.localhost";
const DAY: i64 = 24 * 60 * 60;

/// Days that have a partition, as seconds of their beginning since 1970.
async fn partitions(app: &App) -> Vec<i64> {
    sqlx::query_scalar(
        "SELECT substring(relname FROM '[0-9]+$')::bigint FROM pg_class
         WHERE relkind = 'r' AND relname ~ '^webhook_delivery_[0-9]+$' ORDER BY 1",
    )
    .fetch_all(&app.pool)
    .await
    .unwrap()
}

/// The day of the clock.
fn today(app: &App) -> i64 {
    app.clock.now().as_second().div_euclid(DAY) * DAY
}

/// Attempts once there are so many.
async fn recorded(app: &App, webhook: &Webhook, count: usize) -> Vec<Value> {
    eventually(&format!("{count} attempts are recorded"), || async {
        let attempts = deliveries(app, webhook).await;
        (attempts.len() == count).then_some(attempts)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_is_recorded_and_counted_by_event() {
    let (app, receiver) = with_receiver().await;
    let webhook = webhook_to(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    receiver.react_next_with([500, 404].map(Reaction::Status));
    app.deliver(BOX, "first", "").await;
    has_failed(&app, &webhook, 1).await;
    app.deliver(BOX, "second", "").await;
    app.clock.advance(SignedDuration::from_secs(6));
    has_failed(&app, &webhook, 2).await;
    app.clock.advance(SignedDuration::from_secs(36));
    nothing_waits(&app).await;
    let attempts = recorded(&app, &webhook, 4).await;
    let requests = receiver.requests();
    let expected = [
        (204, json!(null), 1),
        (204, json!(null), 3),
        (404, json!("http_status"), 2),
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
async fn a_week_is_kept_and_what_is_older_is_dropped_by_the_day() {
    let (app, receiver) = with_receiver().await;
    let webhook = webhook_to(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    let first = today(&app);
    for day in 0..12 {
        app.worker_pass().await;
        let (partitions, today) = (partitions(&app).await, today(&app));
        let oldest = first.max(today - 7 * DAY);
        let expected: Vec<_> =
            (0..).map(|day| oldest + day * DAY).take_while(|day| *day <= today + DAY).collect();
        assert_eq!(partitions, expected, "days from a week ago until tomorrow");
        app.deliver(BOX, &day.to_string(), "").await;
        // Each is listed for seven days: what came in the same moment of the day a week ago is not.
        recorded(&app, &webhook, 7.min(day + 1)).await;
        app.advance_hours(24);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_without_a_partition_gets_one() {
    let (app, receiver) = with_receiver().await;
    let webhook = webhook_to(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    app.advance_hours(24 * 40);
    let dropped = sqlx::query("SELECT drop_delivery_partitions($1)")
        .bind((app.clock.now() + SignedDuration::from_hours(72)).to_sqlx());
    dropped.execute(&app.pool).await.unwrap();
    app.deliver(BOX, "hello", "").await;
    recorded(&app, &webhook, 1).await;
    assert!(partitions(&app).await.contains(&today(&app)));
    assert_eq!(receiver.request_count(), 1, "recording it again is no reason to send it again");
}
