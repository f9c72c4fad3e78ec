//! Tests against an installation on a real node, which `./tests/run cluster` starts and `tests/cluster/check` installs.

#![expect(clippy::print_stdout, reason = "the report of what happened to how much mail")]

mod disruptions;
mod installation;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use tempmail_tests::load::senders::{LoadProfile, Senders, SentMail};
use tempmail_tests::receiver::Identity;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Feed, Follower, Receiver};

use self::disruptions::DISRUPTIONS;
use self::installation::NodeInstallation;

/// Where the zone of `tests/cluster/check` says that `hooks.example.com` is.
const RECEIVER: ([u8; 4], u16) = ([10, 250, 0, 1], 443);
/// Mails a second.
const RATE: u32 = 200;
/// Concurrent connections of the senders.
const CONNECTIONS: u32 = 40;
/// Clients that wait for mail, each for that of another address.
const WAITERS: usize = 1_000;
/// Waiters of a token: one long-poll, the others event streams.
const WAITERS_OF_TOKEN: usize = 5;
/// Addresses that are mailboxes, so that webhooks are sent for their mail.
const MAILBOXES: usize = 100;
/// Mails that are accepted before each disruption, and after the last one.
const MAILS_BETWEEN: usize = 1_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the node of tests/cluster"]
async fn loses_no_mail_and_no_webhook_while_pods_are_replaced_and_killed() {
    let installation = NodeInstallation::find().await;
    let receiver = Receiver::start_at(RECEIVER.into(), &Identity::issued_for(&["hooks.example.com"])).await;
    let secret = installation.use_receiver().await;
    let tokens = installation.live_tokens(WAITERS / WAITERS_OF_TOKEN).await;
    let addresses: Vec<String> = (0..WAITERS).map(|nth| format!("w{nth}@mail.example.com")).collect();
    installation.create_mailboxes(&addresses[..MAILBOXES]).await;
    let followers = follow(installation.api, &tokens, &addresses).await;

    let load = Senders::start(&LoadProfile {
        servers: vec![installation.ingest],
        recipients: addresses.clone(),
        connections: CONNECTIONS as usize,
        interval: Some(Duration::from_secs(1) * CONNECTIONS / RATE),
        mails_per_connection: None,
    });
    for disruption in &DISRUPTIONS {
        load.wait_for_accepted(MAILS_BETWEEN).await;
        let before = load.accepted();
        let started = std::time::Instant::now();
        disruption.run(&installation).await;
        let took = started.elapsed().as_secs();
        let accepted = load.accepted() - before;
        println!("{}: {took} s, {accepted} mails accepted meanwhile", disruption.name);
    }
    load.wait_for_accepted(MAILS_BETWEEN).await;
    let accepted = load.stop().await;

    let repeated = count_repeated(&accepted);
    println!("{} mails accepted, {repeated} of them after a retry", accepted.len());
    every_waiter_has_its_mail(&addresses, &followers, &accepted).await;
    every_webhook_has_come(&receiver, &secret, &addresses[..MAILBOXES], &accepted).await;
}

/// Starts a follower of each address, and waits until all of them are ready.
async fn follow(server: SocketAddr, tokens: &[String], addresses: &[String]) -> Vec<Follower> {
    let followers: Vec<Follower> = addresses
        .iter()
        .enumerate()
        .map(|(nth, address)| {
            let feed = if nth % WAITERS_OF_TOKEN == 0 {
                Feed::Inbox(address.clone())
            } else {
                Feed::SseAddress(address.clone())
            };
            Follower::start(server, &tokens[nth / WAITERS_OF_TOKEN], feed)
        })
        .collect();
    join_all(followers.iter().map(Follower::ready)).await;
    followers
}

/// How many mails were accepted after a retry.
fn count_repeated(accepted: &[SentMail]) -> usize {
    accepted.iter().filter(|sent| sent.acceptance.attempts > 1).count()
}

/// Waits until each waiter has every mail to its address. It may have one twice whose `250` was lost.
async fn every_waiter_has_its_mail(addresses: &[String], followers: &[Follower], accepted: &[SentMail]) {
    let mut expected: HashMap<&str, HashSet<&str>> = HashMap::new();
    for SentMail { mail, .. } in accepted {
        expected.entry(&mail.recipient).or_default().insert(&mail.subject);
    }
    for (address, follower) in addresses.iter().zip(followers) {
        let Some(subjects) = expected.get(address.as_str()) else { continue };
        eventually(&format!("{address} has its {} mails", subjects.len()), || async {
            let receipts = follower.receipts();
            let received: HashSet<&str> = receipts.iter().map(|receipt| receipt.subject.as_str()).collect();
            subjects.is_subset(&received).then_some(())
        })
        .await;
    }
    let received: usize = followers.iter().map(|follower| follower.receipts().len()).sum();
    let pushed_twice: usize = followers.iter().map(Follower::duplicates).sum();
    println!("the waiters received {received} messages, and {pushed_twice} of them twice");
    assert_eq!(pushed_twice, 0, "a cursor meets every message once");
    let stored_twice = received - accepted.len();
    let repeated = count_repeated(accepted);
    assert!(stored_twice <= repeated, "{stored_twice} mails too many, and {repeated} were repeated");
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
