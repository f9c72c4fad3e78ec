//! Faults with their real times, and faults in a random order under load.

mod random_faults;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempmail_store::WEBHOOK_LEASE;
use tempmail_tests::fleet::Role;
use tempmail_tests::load::senders::{LoadProfile, Senders};
use tempmail_tests::postgres::{DedicatedPostgres, PostgresProxy, StopMode};
use tempmail_tests::receiver::{Reaction, ReceivedRequest};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, RedisServer, Silence};
use tokio::time::sleep;

use super::ledger::assert_all_delivered;
use super::{
    MailboxWebhook, busy_and_idle_worker, fleet_with_unrecorded_attempt, fleet_with_webhook,
    wait_until_delivered,
};

/// A response that takes longer than a lease without renewal (15 s), and shorter than a process may take to
/// end (25 s).
const LONGER_THAN_A_LEASE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: a response takes 20 s"]
async fn a_draining_worker_keeps_the_lease_of_a_long_request() {
    let (fleet, webhook) = fleet_with_webhook(2).await;
    webhook.receiver.react_next_with([Reaction::DelayedStatus(LONGER_THAN_A_LEASE, 204)]);
    fleet.deliver(0, &webhook.address, "in flight").await;
    webhook.receiver.wait_for_requests(1).await;
    let (draining, _) = busy_and_idle_worker(&fleet).await;
    draining.signal(Signal::SIGTERM);
    fleet.deliver(0, &webhook.address, "pending").await;
    let status = draining.wait_for_exit().await;
    assert!(status.success(), "{status:?}");
    let requests = webhook.receiver.wait_for_requests(2).await;
    wait_until_delivered(&fleet).await;
    let subjects: Vec<_> =
        requests.iter().map(|request| request.event()["data"]["subject"].clone()).collect();
    assert_eq!(subjects, ["in flight", "pending"]);
    assert_eq!(webhook.attempts(&fleet).await, [(1, 204, None), (1, 204, None)]);
    assert_eq!(webhook.receiver.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two thousand mails"]
async fn no_mail_waits_for_a_lease_to_expire_while_nothing_fails() {
    let redis = RedisServer::new();
    let fleet = Fleet::builder().receivers().apis(1).workers(2).redis(&redis.url()).start().await;
    let mut webhooks = Vec::new();
    for nth in 0..4 {
        let tenant = fleet.another_tenant(&format!("tenant {nth}")).await;
        let address = format!("box-{nth}@inbox.localhost");
        webhooks.push(MailboxWebhook::create(&fleet, &tenant, &address).await);
    }
    // So many that some arrive just when the lease of their webhook is released.
    let profile = LoadProfile {
        servers: vec![fleet.smtp(0), fleet.smtp(1)],
        recipients: webhooks.iter().map(|webhook| webhook.address.clone()).collect(),
        connections: 8,
        interval: Some(Duration::from_millis(27)),
        mails_per_connection: Some(250),
    };
    let accepted = Senders::start(&profile).finish().await;
    let totals = assert_all_delivered(&fleet, &webhooks, &accepted).await;
    assert_eq!(
        (totals.accepted, totals.stored, totals.requests, totals.duplicates),
        (2_000, 2_000, 2_000, 0)
    );
    let received: HashMap<String, Instant> = webhooks
        .iter()
        .flat_map(|webhook| webhook.receiver.requests())
        .map(|request| (subject(&request), request.at))
        .collect();
    let wait = |subject: &str, since| received[subject].saturating_duration_since(since);
    let longest = accepted.iter().map(|sent| wait(&sent.mail.subject, sent.acceptance.at)).max();
    assert!(longest < Some(WEBHOOK_LEASE), "a mail waited for {longest:?}");
}

fn subject(request: &ReceivedRequest) -> String {
    request.event()["data"]["subject"].as_str().expect("text").to_owned()
}

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
