//! A process dies or is suspended between a response and its recording. Leases are expired by the test, so
//! that no test waits for their time.

use nix::sys::signal::Signal;
use serde_json::json;
use tempmail_tests::Fleet;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::receiver::Reaction;
use tempmail_tests::rows::expire_webhook_leases;
use tempmail_tests::wait::eventually;

use super::{MailboxWebhook, busy_and_idle_worker, fleet_with_webhook, wait_until_delivered};

/// One worker that has got a response while Postgres was unavailable.
pub(super) async fn fleet_with_unrecorded_attempt() -> (Fleet, MailboxWebhook, DedicatedPostgres) {
    let postgres = DedicatedPostgres::start().await;
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).database(postgres.database().await);
    let fleet = fleet.start().await;
    let webhook = MailboxWebhook::create(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    webhook.receiver.react_next_with([Reaction::HeldStatus(204)]);
    fleet.deliver(0, &webhook.address, "unrecorded").await;
    webhook.receiver.wait_for_requests(1).await;
    postgres.stop(StopMode::Kill).await;
    webhook.receiver.release_held();
    eventually("the response is read", || async {
        (fleet.worker(0).metric("tempmail_webhook_attempts_total").await > 0.0).then_some(())
    })
    .await;
    (fleet, webhook, postgres)
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_what_a_killed_worker_did_not_record_again_with_the_same_id() {
    let (fleet, webhook, postgres) = fleet_with_unrecorded_attempt().await;
    fleet.worker(0).kill().await;
    postgres.ensure_started().await;
    expire_webhook_leases(&fleet.pool).await;
    fleet.worker(0).restart().await;
    let requests = webhook.receiver.wait_for_requests(2).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(requests[0].header("x-webhook-id"), requests[1].header("x-webhook-id"));
    assert!(requests.iter().all(|request| request.is_signed_by(&webhook.webhook.secret)));
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None)]);
    assert_eq!(webhook.receiver.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_worker_records_nothing_after_its_lease_has_expired() {
    let (fleet, webhook) = fleet_with_webhook(2).await;
    webhook.receiver.react_next_with([Reaction::HeldStatus(500)]);
    fleet.deliver(0, &webhook.address, "twice").await;
    webhook.receiver.wait_for_requests(1).await;
    let (suspended, other) = busy_and_idle_worker(&fleet).await;
    suspended.signal(Signal::SIGSTOP);
    expire_webhook_leases(&fleet.pool).await;
    let requests = webhook.receiver.wait_for_requests(2).await;
    assert_eq!(requests[0].body, requests[1].body);
    wait_until_delivered(&fleet).await;
    eventually("the other worker counts one attempt", || async {
        (other.metric("tempmail_webhook_attempts_total").await == 1.0).then_some(())
    })
    .await;
    webhook.receiver.release_held();
    suspended.signal(Signal::SIGCONT);
    eventually("the worker has left the lane", || async {
        let done = suspended.metric("tempmail_webhook_attempts_total").await > 0.0
            && suspended.metric("tempmail_webhooks_claimed").await == 0.0;
        done.then_some(())
    })
    .await;
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None)]);
    let listed = webhook.get(&fleet).await;
    assert_eq!((&listed["status"], &listed["failure_count"]), (&json!("active"), &json!(0)));
    fleet.deliver(0, &webhook.address, "next").await;
    webhook.receiver.wait_for_requests(3).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None), (1, 204, None)]);
}
