//! Nothing fails while mail flows: no webhook is kept in hand by a process that does not work on it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tempmail_store::WEBHOOK_LEASE;
use tempmail_tests::receiver::ReceivedRequest;
use tempmail_tests::{Fleet, RedisServer};

use super::{Line, book};
use crate::realtime::senders::{Flow, Senders};

#[tokio::test(flavor = "multi_thread")]
async fn no_mail_waits_as_long_as_a_dead_process_would_have_it_wait() {
    let redis = RedisServer::new();
    let fleet = Fleet::builder().receivers().apis(1).workers(2).redis(&redis.url()).start().await;
    let mut lines = Vec::new();
    for nth in 0..4 {
        let tenant = fleet.another_tenant(&format!("tenant {nth}")).await;
        lines.push(Line::of(&fleet, &tenant, &format!("box-{nth}@inbox.localhost")).await);
    }
    // So many that they often come just when their webhook was let go of.
    let flow = Flow {
        servers: vec![fleet.smtp(0), fleet.smtp(1)],
        recipients: lines.iter().map(|line| line.address.clone()).collect(),
        connections: 8,
        pace: Some(Duration::from_millis(27)),
        each: Some(250),
    };
    let accepted = Senders::start(&flow).done().await;
    let sums = book::balance(&fleet, &lines, &accepted).await;
    assert_eq!((sums.accepted, sums.stored, sums.requests, sums.duplicates), (2_000, 2_000, 2_000, 0));
    let told: HashMap<String, Instant> = lines
        .iter()
        .flat_map(|line| line.receiver.requests())
        .map(|told| (subject(&told), told.at))
        .collect();
    let waited = |subject: &str, since| told[subject].saturating_duration_since(since);
    let longest = accepted.iter().map(|accepted| waited(&accepted.mail.subject, accepted.taken.at)).max();
    assert!(longest < Some(WEBHOOK_LEASE), "one waited for {longest:?}");
}

fn subject(told: &ReceivedRequest) -> String {
    told.event()["data"]["subject"].as_str().expect("a text").to_owned()
}
