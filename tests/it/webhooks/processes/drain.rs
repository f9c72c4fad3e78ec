//! A worker that receives SIGTERM.

use nix::sys::signal::Signal;
use tempmail_tests::Fleet;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::rows::{count_leased_webhooks, count_pending_events};
use tempmail_tests::wait::eventually;

use super::{fleet_with_webhook, wait_until_delivered};

#[tokio::test(flavor = "multi_thread")]
async fn records_the_request_in_flight_and_releases_the_rest() {
    let (fleet, webhook) = fleet_with_webhook(1).await;
    webhook.receiver.react_next_with([Reaction::HeldStatus(204)]);
    fleet.deliver(0, &webhook.address, "in flight").await;
    webhook.receiver.wait_for_requests(1).await;
    let worker = fleet.worker(0);
    worker.signal(Signal::SIGTERM);
    eventually("the worker drains", || async { (!worker.is_ready().await).then_some(()) }).await;
    fleet.deliver(0, &webhook.address, "pending").await;
    webhook.receiver.release_held();
    let status = worker.wait_for_exit().await;
    assert!(status.success(), "{status:?}");
    assert_eq!(pending_and_leased(&fleet).await, (1, 0));
    assert_eq!(webhook.receiver.request_count(), 1);
    worker.restart().await;
    let requests = webhook.receiver.wait_for_requests(2).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(requests[1].event()["data"]["subject"], "pending");
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None), (1, 204, None)]);
    assert_eq!(webhook.receiver.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_the_webhook_of_a_request_that_is_aborted() {
    let (fleet, webhook) = fleet_with_webhook(1).await;
    webhook.receiver.react_next_with([Reaction::Hang]);
    fleet.deliver(0, &webhook.address, "aborted").await;
    webhook.receiver.wait_for_requests(1).await;
    let worker = fleet.worker(0);
    worker.signal(Signal::SIGTERM);
    eventually("the worker drains", || async { (!worker.is_ready().await).then_some(()) }).await;
    worker.signal(Signal::SIGTERM);
    let status = worker.wait_for_exit().await;
    assert!(status.success(), "{status:?}");
    assert_eq!(pending_and_leased(&fleet).await, (1, 0));
    worker.restart().await;
    let requests = webhook.receiver.wait_for_requests(2).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None)]);
}

/// Pending events, and webhooks with a lease.
async fn pending_and_leased(fleet: &Fleet) -> (i64, i64) {
    (count_pending_events(&fleet.pool).await, count_leased_webhooks(&fleet.pool).await)
}
