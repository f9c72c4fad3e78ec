//! Postgres does not answer one of two workers: it gives its webhooks up, and the other one delivers to them.

use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::{DedicatedPostgres, PostgresProxy};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Silence};

use crate::webhooks::processes::{MailboxWebhook, wait_until_delivered};

/// Mails while the worker is cut off.
const MAILS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: the network before Postgres is silent for longer than a lease"]
async fn another_worker_delivers_what_a_worker_without_answers_gave_up() {
    let postgres = DedicatedPostgres::start().await;
    let proxy = PostgresProxy::start_before(postgres.socket()).await;
    let fleet = Fleet::builder()
        .receivers()
        .apis(1)
        .ingests(1)
        .workers(2)
        .database(postgres.database().await)
        .postgres_through(proxy.port())
        .direct(Role::Api, 0)
        .direct(Role::Ingest, 0)
        .direct(Role::Worker, 1)
        .start()
        .await;
    let webhook = MailboxWebhook::create(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    fleet.deliver(0, &webhook.address, "before").await;
    wait_until_delivered(&fleet).await;

    proxy.fall_silent(Silence::Both);
    for i in 0..MAILS {
        fleet.deliver(0, &webhook.address, &format!("{i}")).await;
    }
    wait_until_delivered(&fleet).await;
    let requests = webhook.receiver.requests();
    assert!(requests.iter().all(|request| request.is_signed_by(&webhook.webhook.secret)));
    eventually("the cut-off worker is not ready", || async {
        (!fleet.worker(0).is_ready().await).then_some(())
    })
    .await;
    assert!(fleet.worker(0).is_live().await && fleet.worker(1).is_ready().await);
    proxy.restore();
    fleet.worker(0).wait_until_ready().await;
}
