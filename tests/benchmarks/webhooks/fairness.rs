//! Whether receivers that never answer keep others waiting: a steady flow to receivers that answer,
//! alone, and then beside hundreds of dead ones whose tenants get mail too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Webhooks;
use super::installation::{Installation, Site, Worker};
use super::receivers::Reaction;
use super::steady::{HEAD, WARM_UP, arrive, ledger, send, times};
use crate::measure::{Latencies, print_table};
use crate::realtime::ledger::Ledger;
use crate::smtp::machine;

/// How long it may take until all dead ones are in hand.
const IN_HAND: Duration = Duration::from_secs(20);
/// Time between two looks at the requests in flight.
const LOOK: Duration = Duration::from_secs(1);

/// Measures both in one run.
///
/// # Errors
/// A mail is refused, or the dead are not in hand.
pub async fn run(webhooks: &Webhooks, site: &Site) -> anyhow::Result<()> {
    let (living, dead, rate) = (webhooks.webhooks, webhooks.dead, webhooks.rate);
    let everybody = living + dead;
    let is_living = |receiver: u32| receiver < living;
    // Mails to the dead alone, so that each is in hand; then those that are measured: first to the
    // living alone, then for twice as long to all.
    let seconds = webhooks.seconds + WARM_UP;
    let alone = ledger(1, rate * seconds, 0..living);
    let burst = Arc::new(Ledger::new(1_000_000, living..everybody));
    let beside = beside(webhooks, 2_000_000, 2 * seconds);
    let answers = Reaction::Answers(Duration::from_millis(webhooks.answer_ms));
    let mut installation = Installation::new(site, "fairness").await?;
    let healthy = site.receivers.group(0, living, answers, Arc::clone(&alone)).await?;
    let silent = site.receivers.group(living, dead, Reaction::Never, Arc::clone(&burst)).await?;
    installation.add_webhooks(&healthy.urls).await?;
    installation.add_webhooks(&silent.urls).await?;
    let (ingest, smtp) = installation.ingest().await?;
    let worker = installation.worker().await?;

    send(site, smtp, everybody, rate, &alone).await?;
    arrive(&alone, is_living).await;
    healthy.write_into(&beside);
    send(site, smtp, everybody, webhooks.dead.max(1), &burst).await?;
    dead_in_hand(&worker, dead).await?;
    let flow = send(site, smtp, everybody, rate + webhooks.dead_rate, &beside);
    let (sent, in_flight) = watched(flow, &worker).await;
    sent?;
    arrive(&beside, is_living).await;

    let (without, mut first) = times(&alone, rate * WARM_UP, is_living);
    let (with, mut second) = times(&beside, (rate + webhooks.dead_rate) * WARM_UP, is_living);
    first.insert(0, format!("{living} alone"));
    second.insert(0, format!("{living} beside {dead} dead"));
    println!(
        "\nFairness: {rate} mails/s to the living, {} to the dead. {}\n",
        webhooks.dead_rate,
        machine(&site.directory)?
    );
    let mut head = vec!["receivers"];
    head.extend(HEAD);
    print_table(&head, &[first, second]);
    println!(
        "\np99 beside the dead / alone: {:.2}; p50: {:.2}; requests in flight, looked at each second: {} at least, {} in the middle, {} at most; requests to the dead: {}",
        ratio(&with, &without, Latencies::p99),
        ratio(&with, &without, Latencies::p50),
        in_flight.first().unwrap_or(&0),
        in_flight.get(in_flight.len() / 2).unwrap_or(&0),
        in_flight.last().unwrap_or(&0),
        silent.requests(),
    );
    ingest.stop().await?;
    worker.process.kill().await?;
    installation.remove().await
}

/// Mails to living and dead at their rates, mixed.
fn beside(webhooks: &Webhooks, first: usize, seconds: u32) -> Arc<Ledger> {
    let mut random = StdRng::seed_from_u64(first as u64);
    let (living, rate) = (webhooks.webhooks, webhooks.rate + webhooks.dead_rate);
    let to = (0..rate * seconds).map(|_| {
        if random.random_range(0..rate) < webhooks.rate {
            random.random_range(0..living)
        } else {
            random.random_range(living..living + webhooks.dead)
        }
    });
    Arc::new(Ledger::new(first, to))
}

async fn dead_in_hand(worker: &Worker, dead: u32) -> anyhow::Result<()> {
    let began = Instant::now();
    while worker.in_flight().await? < dead {
        ensure!(began.elapsed() < IN_HAND, "{} of {dead} are in hand", worker.in_flight().await?);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The outcome of `task`, and the requests in flight that were seen meanwhile, fewest first.
async fn watched<T>(task: impl Future<Output = T>, worker: &Worker) -> (T, Vec<u32>) {
    let mut seen = Vec::new();
    let mut task = std::pin::pin!(task);
    let mut looks = tokio::time::interval(LOOK);
    let outcome = loop {
        tokio::select! {
            outcome = &mut task => break outcome,
            _ = looks.tick() => seen.extend(worker.in_flight().await),
        }
    };
    seen.sort_unstable();
    (outcome, seen)
}

fn ratio(with: &Latencies, without: &Latencies, of: impl Fn(&Latencies) -> Duration) -> f64 {
    of(with).as_secs_f64() / of(without).as_secs_f64()
}
