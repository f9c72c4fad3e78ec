//! Leases with their real time of 15 s.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempmail_store::WEBHOOK_LEASE;
use tempmail_tests::load::senders::{LoadProfile, Senders};
use tempmail_tests::receiver::{Reaction, ReceivedRequest};
use tempmail_tests::{Fleet, RedisServer};

use crate::webhooks::processes::ledger::assert_all_delivered;
use crate::webhooks::processes::{
    MailboxWebhook, busy_and_idle_worker, fleet_with_webhook, wait_until_delivered,
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
