//! Postgres is unavailable when a response arrives.

use std::time::Duration;

use tempmail_tests::Fleet;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::receiver::Reaction;
use tokio::time::sleep;

use crate::webhooks::processes::crash::fleet_with_unrecorded_attempt;
use crate::webhooks::processes::{MailboxWebhook, wait_until_delivered};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: Postgres must be back within the 10 s for which recording is retried"]
async fn records_an_attempt_when_postgres_is_back() {
    let (fleet, webhook, postgres) = fleet_with_unrecorded_attempt().await;
    postgres.ensure_started().await;
    wait_until_delivered(&fleet).await;
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None)]);
    assert_eq!(webhook.receiver.request_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: Postgres is unavailable for longer than the timeout of a request"]
async fn does_not_record_a_timeout_for_a_response_while_postgres_is_unavailable() {
    let postgres = DedicatedPostgres::start().await;
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).database(postgres.database().await);
    // Some seconds longer than the responses take, since the receiver may be delayed.
    let fleet = fleet.config(|config| config.webhooks.timeout_seconds = 6).start().await;
    let webhook = MailboxWebhook::create(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    // The first request is sent by itself, then the two others side by side.
    let delayed = |seconds| Reaction::DelayedStatus(Duration::from_secs(seconds), 204);
    webhook.receiver.react_next_with([Reaction::Status(204), delayed(2), delayed(3)]);
    fleet.worker(0).terminate().await;
    for subject in ["first", "second", "third"] {
        fleet.deliver(0, &webhook.address, subject).await;
    }
    fleet.worker(0).restart().await;
    webhook.receiver.wait_for_requests(3).await;
    postgres.stop(StopMode::Kill).await;
    // Longer than the timeout, shorter than the 10 s for which recording is retried.
    sleep(Duration::from_secs(7)).await;
    postgres.ensure_started().await;
    wait_until_delivered(&fleet).await;
    assert_eq!(webhook.attempts(&fleet).await, vec![(1, 204, None); 3]);
    assert_eq!(webhook.receiver.request_count(), 3);
}
