//! Tests against an installation on a real node, which `./tests/run cluster` starts and `tests/cluster/check` installs.

#![expect(clippy::print_stdout, reason = "the report of what happened to how much mail")]

mod disruptions;
mod installation;
mod metrics_api;
mod scaling;
mod waiters;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tempmail_tests::Receiver;
use tempmail_tests::load::senders::{LoadProfile, Senders, SentMail};
use tempmail_tests::receiver::Identity;
use tempmail_tests::wait::eventually;

use self::disruptions::DISRUPTIONS;
use self::installation::NodeInstallation;
use self::waiters::{Waiters, count_repeated, slowest};

/// Where the zone of `tests/cluster/check` says that `hooks.example.com` is.
const RECEIVER: ([u8; 4], u16) = ([10, 250, 0, 1], 443);
/// Mails a second.
const RATE: u32 = 200;
/// Concurrent connections of the senders.
const CONNECTIONS: u32 = 40;
/// Clients that wait for mail.
const WAITERS: usize = 1_000;
/// Addresses that are mailboxes, so that webhooks are sent for their mail, and WebSockets wait for it.
const MAILBOXES: usize = 100;
/// Mails that are accepted before each disruption, and after the last one.
const MAILS_BETWEEN: usize = 1_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the node of tests/cluster"]
async fn loses_no_mail_and_no_webhook_while_pods_are_replaced_and_killed() {
    let installation = NodeInstallation::find().await;
    let receiver = Receiver::start_at(RECEIVER.into(), &Identity::issued_for(&["hooks.example.com"])).await;
    let secret = installation.use_receiver().await;
    let waiters = Waiters::start(&installation, "w", WAITERS, MAILBOXES).await;

    let load = Senders::start(&LoadProfile {
        servers: vec![installation.ingest],
        recipients: waiters.addresses().to_vec(),
        connections: CONNECTIONS as usize,
        interval: Some(Duration::from_secs(1) * CONNECTIONS / RATE),
        mails_per_connection: None,
    });
    let mut periods = Vec::new();
    for disruption in &DISRUPTIONS {
        load.wait_for_accepted(MAILS_BETWEEN).await;
        let before = load.accepted();
        let started = Instant::now();
        disruption.run(&installation).await;
        let period = started..Instant::now();
        let took = (period.end - period.start).as_secs();
        let accepted = load.accepted() - before;
        println!("{}: {took} s, {accepted} mails accepted meanwhile", disruption.name);
        periods.push((disruption.name, period));
    }
    load.wait_for_accepted(MAILS_BETWEEN).await;
    let accepted = load.stop().await;

    println!("{} mails accepted, {} of them after a retry", accepted.len(), count_repeated(&accepted));
    let delays = waiters.have_every_mail(&accepted).await;
    for (name, period) in periods {
        let meanwhile = delays.iter().filter(|delay| period.contains(&delay.accepted_at));
        println!("{name}: the slowest mail took {} ms to its waiter", slowest(meanwhile).as_millis());
    }
    every_webhook_has_come(&receiver, &secret, &waiters.addresses()[..MAILBOXES], &accepted).await;
}

/// Waits until the receiver has an event, with a valid signature, for every mail to a mailbox.
async fn every_webhook_has_come(
    receiver: &Receiver,
    secret: &str,
    mailboxes: &[String],
    accepted: &[SentMail],
) {
    let to_mailboxes = accepted.iter().filter(|sent| mailboxes.contains(&sent.mail.recipient));
    let expected: HashSet<&str> = to_mailboxes.map(|sent| sent.mail.subject.as_str()).collect();
    eventually(&format!("{} webhooks come", expected.len()), || async {
        let received: HashSet<String> = receiver
            .requests()
            .iter()
            .filter_map(|request| Some(request.event()["data"]["subject"].as_str()?.to_owned()))
            .collect();
        expected.iter().all(|subject| received.contains(*subject)).then_some(())
    })
    .await;
    let requests = receiver.requests();
    assert!(requests.iter().all(|request| request.is_signed_by(secret)));
    println!("{} webhooks expected, {} requests received", expected.len(), requests.len());
}
