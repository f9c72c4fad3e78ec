//! A worker is told to end.

use std::time::Duration;

use nix::sys::signal::Signal;
use tempmail_tests::Fleet;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;

use super::{all_is_told, at_work, with_line};

/// An answer that takes longer than a webhook is in hand without renewal (15 s), and shorter than a
/// process may take to end (25 s).
const LONG: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_is_recorded_however_long_it_takes_and_the_other_worker_goes_on() {
    let (fleet, line) = with_line(2).await;
    line.receiver.react_next_with([Reaction::DelayedStatus(LONG, 204)]);
    fleet.deliver(0, &line.address, "under way").await;
    line.receiver.wait_for_requests(1).await;
    let (told, _) = at_work(&fleet).await;
    told.signal(Signal::SIGTERM);
    fleet.deliver(0, &line.address, "waits").await;
    let status = told.wait_for_exit().await;
    assert!(status.success(), "{status:?}");
    let requests = line.receiver.wait_for_requests(2).await;
    all_is_told(&fleet).await;
    let subjects: Vec<_> =
        requests.iter().map(|request| request.event()["data"]["subject"].clone()).collect();
    assert_eq!(subjects, ["under way", "waits"]);
    assert_eq!(line.attempts(&fleet).await, [(1, 204, None), (1, 204, None)]);
    assert_eq!(line.receiver.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_behind_a_request_under_way_is_free_for_others() {
    let (fleet, line) = with_line(1).await;
    line.receiver.react_next_with([Reaction::DelayedStatus(Duration::from_secs(3), 204)]);
    fleet.deliver(0, &line.address, "under way").await;
    line.receiver.wait_for_requests(1).await;
    fleet.worker(0).signal(Signal::SIGTERM);
    fleet.deliver(0, &line.address, "waits").await;
    let status = fleet.worker(0).wait_for_exit().await;
    assert!(status.success(), "{status:?}");
    assert_eq!((waiting(&fleet).await, in_hand(&fleet).await), (1, 0));
    assert_eq!(line.receiver.request_count(), 1);
    fleet.worker(0).restart().await;
    let requests = line.receiver.wait_for_requests(2).await;
    all_is_told(&fleet).await;
    assert_eq!(requests[1].event()["data"]["subject"], "waits");
    assert_eq!(line.receiver.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_cut_off_is_free_for_others() {
    let (fleet, line) = with_line(1).await;
    line.receiver.react_next_with([Reaction::Hang]);
    fleet.deliver(0, &line.address, "cut off").await;
    line.receiver.wait_for_requests(1).await;
    let worker = fleet.worker(0);
    worker.signal(Signal::SIGTERM);
    eventually("it drains", || async { (!worker.is_ready().await).then_some(()) }).await;
    worker.signal(Signal::SIGTERM);
    let status = worker.wait_for_exit().await;
    assert!(status.success(), "{status:?}");
    assert_eq!((waiting(&fleet).await, in_hand(&fleet).await), (1, 0));
    worker.restart().await;
    let requests = line.receiver.wait_for_requests(2).await;
    all_is_told(&fleet).await;
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(line.attempts(&fleet).await, [(1, 204, None)]);
}

/// Events that wait.
async fn waiting(fleet: &Fleet) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM webhook_event").fetch_one(&fleet.pool).await.unwrap()
}

/// Webhooks that a process has in hand.
async fn in_hand(fleet: &Fleet) -> i64 {
    let held = sqlx::query_scalar("SELECT count(*) FROM webhook WHERE lease_holder IS NOT NULL");
    held.fetch_one(&fleet.pool).await.unwrap()
}
