//! Whether receivers that never answer keep others waiting: a steady flow to receivers that answer,
//! alone, and then beside hundreds of dead ones whose tenants get mail too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Webhooks;
use super::receivers::ReceiverBehaviour;
use super::setup::{WebhookBench, WebhookSetup, WorkerProcess};
use super::steady::{HEAD, WARM_UP, delivery_log, send, times, wait_for_delivery};
use crate::environment::describe_machine;
use crate::measure::{Latencies, print_table};
use crate::realtime::delivery_log::DeliveryLog;

/// How long it may take until all dead ones are claimed.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two polls of the requests in flight.
const POLL: Duration = Duration::from_secs(1);

/// Measures both in one run.
///
/// # Errors
/// A mail is refused, or the dead are not claimed.
pub async fn run(webhooks: &Webhooks, bench: &WebhookBench) -> anyhow::Result<()> {
    let (living, dead, rate) = (webhooks.webhooks, webhooks.dead, webhooks.rate);
    let everybody = living + dead;
    let is_living = |receiver: u32| receiver < living;
    // Mails to the dead alone, so that each is claimed; then those that are measured: first to the
    // living alone, then for twice as long to all.
    let seconds = webhooks.seconds + WARM_UP;
    let alone = delivery_log(1, rate * seconds, 0..living);
    let burst = Arc::new(DeliveryLog::new(1_000_000, living..everybody));
    let mixed = mixed(webhooks, 2_000_000, 2 * seconds);
    let answers = ReceiverBehaviour::Answers(Duration::from_millis(webhooks.answer_ms));
    let mut setup = WebhookSetup::new(bench, "fairness").await?;
    let healthy = bench.receivers.group(0, living, answers, Arc::clone(&alone)).await?;
    let silent = bench.receivers.group(living, dead, ReceiverBehaviour::Never, Arc::clone(&burst)).await?;
    setup.add_webhooks(&healthy.urls).await?;
    setup.add_webhooks(&silent.urls).await?;
    let (ingest, smtp) = setup.ingest().await?;
    let worker = setup.worker().await?;

    send(bench, smtp, everybody, rate, &alone).await?;
    wait_for_delivery(&alone, is_living).await;
    healthy.record_in(&mixed);
    send(bench, smtp, everybody, webhooks.dead.max(1), &burst).await?;
    wait_until_claimed(&worker, dead).await?;
    let flow = send(bench, smtp, everybody, rate + webhooks.dead_rate, &mixed);
    let (sent, in_flight) = watched(flow, &worker).await;
    sent?;
    wait_for_delivery(&mixed, is_living).await;

    let (without, mut first) = times(&alone, rate * WARM_UP, is_living);
    let (with, mut second) = times(&mixed, (rate + webhooks.dead_rate) * WARM_UP, is_living);
    first.insert(0, format!("{living} alone"));
    second.insert(0, format!("{living} beside {dead} dead"));
    println!(
        "\nFairness: {rate} mails/s to the living, {} to the dead. {}\n",
        webhooks.dead_rate,
        describe_machine(&bench.directory)?
    );
    let mut head = vec!["receivers"];
    head.extend(HEAD);
    print_table(&head, &[first, second]);
    println!(
        "\np99 beside the dead / alone: {:.2}; p50: {:.2}; requests in flight, sampled each second: {} at least, {} in the middle, {} at most; requests to the dead: {}",
        ratio(&with, &without, Latencies::p99),
        ratio(&with, &without, Latencies::p50),
        in_flight.first().unwrap_or(&0),
        in_flight.get(in_flight.len() / 2).unwrap_or(&0),
        in_flight.last().unwrap_or(&0),
        silent.requests(),
    );
    ingest.stop().await?;
    worker.process.kill().await?;
    setup.remove().await
}

/// Mails to living and dead at their rates, mixed.
fn mixed(webhooks: &Webhooks, first: usize, seconds: u32) -> Arc<DeliveryLog> {
    let mut random = StdRng::seed_from_u64(first as u64);
    let (living, rate) = (webhooks.webhooks, webhooks.rate + webhooks.dead_rate);
    let to = (0..rate * seconds).map(|_| {
        if random.random_range(0..rate) < webhooks.rate {
            random.random_range(0..living)
        } else {
            random.random_range(living..living + webhooks.dead)
        }
    });
    Arc::new(DeliveryLog::new(first, to))
}

async fn wait_until_claimed(worker: &WorkerProcess, dead: u32) -> anyhow::Result<()> {
    let began = Instant::now();
    while worker.in_flight().await? < dead {
        ensure!(began.elapsed() < CLAIM_TIMEOUT, "{} of {dead} are claimed", worker.in_flight().await?);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The outcome of `task`, and the requests in flight that were seen meanwhile, fewest first.
async fn watched<T>(task: impl Future<Output = T>, worker: &WorkerProcess) -> (T, Vec<u32>) {
    let mut seen = Vec::new();
    let mut task = std::pin::pin!(task);
    let mut looks = tokio::time::interval(POLL);
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
