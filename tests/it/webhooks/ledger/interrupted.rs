//! Something dies or stands still between an answer and its recording.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use tempmail_tests::Fleet;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;
use tokio::time::sleep;

use super::{Line, all_is_told, at_work, with_line};

/// Long enough for a test to do something before the answer comes.
const LATE: Duration = Duration::from_secs(8);

/// One worker whose request got its answer while Postgres was away.
async fn answered_and_not_recorded() -> (Fleet, Line, DedicatedPostgres) {
    let postgres = DedicatedPostgres::start().await;
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).database(postgres.database().await);
    let fleet = fleet.start().await;
    let line = Line::of(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    line.receiver.react_next_with([Reaction::DelayedStatus(LATE, 204)]);
    fleet.deliver(0, &line.address, "told").await;
    line.receiver.wait_for_requests(1).await;
    postgres.stop(StopMode::Kill).await;
    eventually("the answer is read", || async {
        (fleet.worker(0).metric("tempmail_webhook_attempts_total").await > 0.0).then_some(())
    })
    .await;
    (fleet, line, postgres)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_worker_did_not_record_is_told_again_with_the_same_id() {
    let (fleet, line, postgres) = answered_and_not_recorded().await;
    fleet.worker(0).kill().await;
    postgres.ensure_started().await;
    fleet.worker(0).restart().await;
    let requests = line.receiver.wait_for_requests(2).await;
    all_is_told(&fleet).await;
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(requests[0].header("x-webhook-id"), requests[1].header("x-webhook-id"));
    assert!(requests.iter().all(|request| request.is_signed_by(&line.webhook.secret)));
    assert_eq!(line.attempts(&fleet).await, [(1, 204, None)]);
    assert_eq!(line.receiver.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_recorded_is_recorded_later_and_told_once() {
    let (fleet, line, postgres) = answered_and_not_recorded().await;
    postgres.ensure_started().await;
    all_is_told(&fleet).await;
    assert_eq!(line.attempts(&fleet).await, [(1, 204, None)]);
    assert_eq!(line.receiver.request_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stood_still_past_its_time_records_nothing() {
    let (fleet, line) = with_line(2).await;
    line.receiver.react_next_with([Reaction::DelayedStatus(LATE, 500)]);
    fleet.deliver(0, &line.address, "told").await;
    line.receiver.wait_for_requests(1).await;
    let (still, other) = at_work(&fleet).await;
    still.signal(Signal::SIGSTOP);
    let requests = line.receiver.wait_for_requests(2).await;
    assert_eq!(requests[0].body, requests[1].body);
    all_is_told(&fleet).await;
    assert_eq!(other.metric("tempmail_webhook_attempts_total").await, 1.0);
    still.signal(Signal::SIGCONT);
    eventually("it is done with what it had in hand", || async {
        let done = still.metric("tempmail_webhook_attempts_total").await > 0.0
            && still.metric("tempmail_webhooks_in_hand").await == 0.0;
        done.then_some(())
    })
    .await;
    assert_eq!(line.attempts(&fleet).await, [(1, 204, None)]);
    let listed = line.listed(&fleet).await;
    assert_eq!((&listed["status"], &listed["failure_count"]), (&json!("active"), &json!(0)));
    fleet.deliver(0, &line.address, "next").await;
    line.receiver.wait_for_requests(3).await;
    all_is_told(&fleet).await;
    assert_eq!(line.attempts(&fleet).await, [(1, 204, None), (1, 204, None)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_while_postgres_is_away_is_no_timeout() {
    let postgres = DedicatedPostgres::start().await;
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).database(postgres.database().await);
    let timeout = Duration::from_secs(4);
    let fleet = fleet.config(|config| config.webhooks.timeout_seconds = timeout.as_secs()).start().await;
    let line = Line::of(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    // The first is told by itself, and then the two others side by side.
    let late = |seconds| Reaction::DelayedStatus(Duration::from_secs(seconds), 204);
    line.receiver.react_next_with([Reaction::Status(204), late(2), late(3)]);
    fleet.worker(0).terminate().await;
    for subject in ["first", "second", "third"] {
        fleet.deliver(0, &line.address, subject).await;
    }
    fleet.worker(0).restart().await;
    line.receiver.wait_for_requests(3).await;
    postgres.stop(StopMode::Kill).await;
    // What is tried is an absence of this length.
    sleep(2 * timeout).await;
    postgres.ensure_started().await;
    all_is_told(&fleet).await;
    assert_eq!(line.attempts(&fleet).await, vec![(1, 204, None); 3]);
    assert_eq!(line.receiver.request_count(), 3);
}
