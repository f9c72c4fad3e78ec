//! Mail at a steady rate, and how long each takes from its `250` to its receiver.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Webhooks;
use super::installation::{Installation, Site};
use super::receivers::Reaction;
use super::usage::Usage;
use crate::measure::{Latencies, millis, print_table};
use crate::realtime::flow::{self, Destination};
use crate::realtime::ledger::Ledger;
use crate::smtp::machine;

/// Seconds of mail that only have to arrive.
pub const WARM_UP: u32 = 2;
/// How long the last ones may take.
const ARRIVE: Duration = Duration::from_secs(30);
/// Seconds of mail to one webhook alone, and mails of each.
const ONE_SECONDS: u32 = 10;

/// Heads of [`row`]'s columns.
pub const HEAD: [&str; 7] = ["mails", "250 to receipt p50, ms", "p90", "p99", "max", "missed", "repeated"];

/// Measures many webhooks, and one alone that gets a fifth of the mails.
///
/// # Errors
/// A mail is refused.
pub async fn run(webhooks: &Webhooks, site: &Site) -> anyhow::Result<()> {
    let (count, rate) = (webhooks.webhooks, webhooks.rate);
    let many = measure(webhooks, site, "steady_many", count, rate, webhooks.seconds).await?;
    let one = measure(webhooks, site, "steady_one", 1, rate / 5, ONE_SECONDS).await?;
    println!("\nA steady flow. {}\n", machine(&site.directory)?);
    let mut head = vec!["webhooks", "mails/s"];
    head.extend(HEAD);
    head.extend(["connections", "worker us", "Postgres us, mail too", "receivers us", "transactions"]);
    print_table(&head, &[many, one]);
    Ok(())
}

async fn measure(
    webhooks: &Webhooks,
    site: &Site,
    name: &str,
    count: u32,
    rate: u32,
    seconds: u32,
) -> anyhow::Result<Vec<String>> {
    let mails = rate * (seconds + WARM_UP);
    let ledger = ledger(1, mails, 0..count);
    let reaction = Reaction::Answers(Duration::from_millis(webhooks.answer_ms));
    let group = site.receivers.group(0, count, reaction, Arc::clone(&ledger)).await?;
    let mut installation = Installation::new(site, name).await?;
    installation.add_webhooks(&group.urls).await?;
    let (ingest, smtp) = installation.ingest().await?;
    let worker = installation.worker().await?;
    let before = Usage::now(site, &installation, &worker).await?;
    send(site, smtp, count, rate, &ledger).await?;
    arrive(&ledger, |_| true).await;
    installation.delivered().await?;
    let spent = before.until(Usage::now(site, &installation, &worker).await?);
    let mut row = vec![count.to_string(), rate.to_string()];
    row.extend(times(&ledger, rate * WARM_UP, |_| true).1);
    row.push(group.connections().to_string());
    row.extend(spent.each(mails));
    ingest.stop().await?;
    worker.process.stop().await?;
    installation.remove().await?;
    Ok(row)
}

/// `mails` mails from number `first` on, to receivers of `to` at random.
pub fn ledger(first: usize, mails: u32, to: std::ops::Range<u32>) -> Arc<Ledger> {
    let mut random = StdRng::seed_from_u64(first as u64);
    Arc::new(Ledger::new(first, (0..mails).map(|_| random.random_range(to.clone()))))
}

/// Sends the mails of a ledger to the first `count` mailboxes.
///
/// # Errors
/// One is refused.
pub async fn send(
    site: &Site,
    smtp: SocketAddr,
    count: u32,
    rate: u32,
    ledger: &Arc<Ledger>,
) -> anyhow::Result<()> {
    let destination = Destination::mail(smtp, (0..count).map(Installation::address).collect());
    flow::send(site.generator.handle(), destination, rate, Arc::clone(ledger)).await?;
    Ok(())
}

/// Waits until those receivers that `counts` have everything, or the time is over.
pub async fn arrive(ledger: &Ledger, counts: impl Fn(u32) -> bool) {
    let began = Instant::now();
    while ledger.times(0, &counts).missed > 0 && began.elapsed() < ARRIVE {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The times from the `250` on of those receivers that `counts`, and a row of them.
pub fn times(ledger: &Ledger, warm_up: u32, counts: impl Fn(u32) -> bool) -> (Latencies, Vec<String>) {
    let times = ledger.times(warm_up as usize, counts);
    let mails = times.after_accepted.len();
    let latencies = Latencies::new(times.after_accepted);
    let text = |duration| format!("{:.1}", millis(duration));
    let row = vec![
        mails.to_string(),
        text(latencies.p50()),
        text(latencies.quantile(0.9)),
        text(latencies.p99()),
        text(latencies.max()),
        times.missed.to_string(),
        times.repeated.to_string(),
    ];
    (latencies, row)
}
