//! Mail at a steady rate, and how long each takes from its `250` to its receiver.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Webhooks;
use super::receivers::ReceiverBehaviour;
use super::setup::{WebhookBench, WebhookSetup};
use super::usage::Usage;
use crate::environment::describe_machine;
use crate::measure::{Latencies, millis, print_table};
use crate::realtime::delivery_log::DeliveryLog;
use crate::realtime::flow::{self, Destination};

/// Seconds of mail whose times are not counted.
pub const WARM_UP: u32 = 2;
/// How long the last ones may take.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);
/// Seconds of mail to one webhook alone, and mails of each.
const ONE_SECONDS: u32 = 10;

/// Heads of [`row`]'s columns.
pub const HEAD: [&str; 7] = ["mails", "250 to receipt p50, ms", "p90", "p99", "max", "missed", "repeated"];

/// Measures many webhooks, and one alone that gets a fifth of the mails.
///
/// # Errors
/// A mail is refused.
pub async fn run(webhooks: &Webhooks, bench: &WebhookBench) -> anyhow::Result<()> {
    let (count, rate) = (webhooks.webhooks, webhooks.rate);
    let many = measure(webhooks, bench, "steady_many", count, rate, webhooks.seconds).await?;
    let one = measure(webhooks, bench, "steady_one", 1, rate / 5, ONE_SECONDS).await?;
    println!("\nA steady flow. {}\n", describe_machine(&bench.directory)?);
    let mut head = vec!["webhooks", "mails/s"];
    head.extend(HEAD);
    head.extend(["connections", "worker us", "Postgres us, mail too", "receivers us", "transactions"]);
    print_table(&head, &[many, one]);
    Ok(())
}

async fn measure(
    webhooks: &Webhooks,
    bench: &WebhookBench,
    name: &str,
    count: u32,
    rate: u32,
    seconds: u32,
) -> anyhow::Result<Vec<String>> {
    let mails = rate * (seconds + WARM_UP);
    let delivery_log = delivery_log(1, mails, 0..count);
    let reaction = ReceiverBehaviour::Answers(Duration::from_millis(webhooks.answer_ms));
    let group = bench.receivers.group(0, count, reaction, Arc::clone(&delivery_log)).await?;
    let mut setup = WebhookSetup::new(bench, name).await?;
    setup.add_webhooks(&group.urls).await?;
    let (ingest, smtp) = setup.ingest().await?;
    let worker = setup.worker().await?;
    let before = Usage::measure(bench, &setup, &worker).await?;
    send(bench, smtp, count, rate, &delivery_log).await?;
    wait_for_delivery(&delivery_log, |_| true).await;
    setup.delivered().await?;
    let delta = before.delta_to(Usage::measure(bench, &setup, &worker).await?);
    let mut row = vec![count.to_string(), rate.to_string()];
    row.extend(times(&delivery_log, rate * WARM_UP, |_| true).1);
    row.push(group.connections().to_string());
    row.extend(delta.each(mails));
    ingest.stop().await?;
    worker.process.stop().await?;
    setup.remove().await?;
    Ok(row)
}

/// `mails` mails from number `first` on, to receivers of `to` at random.
pub fn delivery_log(first: usize, mails: u32, to: std::ops::Range<u32>) -> Arc<DeliveryLog> {
    let mut random = StdRng::seed_from_u64(first as u64);
    Arc::new(DeliveryLog::new(first, (0..mails).map(|_| random.random_range(to.clone()))))
}

/// Sends the mails of a delivery log to the first `count` mailboxes.
///
/// # Errors
/// One is refused.
pub async fn send(
    bench: &WebhookBench,
    smtp: SocketAddr,
    count: u32,
    rate: u32,
    delivery_log: &Arc<DeliveryLog>,
) -> anyhow::Result<()> {
    let destination = Destination::mail(smtp, (0..count).map(WebhookSetup::address).collect());
    flow::send(bench.load_thread.handle(), destination, rate, Arc::clone(delivery_log)).await?;
    Ok(())
}

/// Waits until those receivers that `counts` have everything, or the time is over.
pub async fn wait_for_delivery(delivery_log: &DeliveryLog, counts: impl Fn(u32) -> bool) {
    let began = Instant::now();
    while delivery_log.times(0, &counts).missed > 0 && began.elapsed() < DELIVERY_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The times from the `250` on of those receivers that `counts`, and a row of them.
pub fn times(
    delivery_log: &DeliveryLog,
    warm_up: u32,
    counts: impl Fn(u32) -> bool,
) -> (Latencies, Vec<String>) {
    let times = delivery_log.times(warm_up as usize, counts);
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
