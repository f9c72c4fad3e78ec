//! A backlog is delivered, with nothing else to do: mail comes while no worker runs, and then one is
//! started.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Webhooks;
use super::receivers::ReceiverBehaviour;
use super::setup::{WebhookBench, WebhookSetup};
use super::usage::Usage;
use crate::environment::describe_machine;
use crate::measure::print_table;
use crate::realtime::delivery_log::DeliveryLog;
use crate::realtime::flow::{self, Destination};

/// More mails a second than there can be.
const AT_ONCE: u32 = 1_000_000;

/// Measures many webhooks, and one alone.
///
/// # Errors
/// A server does not start, or an event is not delivered.
pub async fn run(webhooks: &Webhooks, bench: &WebhookBench) -> anyhow::Result<()> {
    let many = measure(webhooks, bench, "drain_many", webhooks.webhooks, webhooks.events).await?;
    let one = measure(webhooks, bench, "drain_one", 1, webhooks.events_of_one).await?;
    println!(
        "\nA backlog; receivers answer after {} ms. {}\n",
        webhooks.answer_ms,
        describe_machine(&bench.directory)?
    );
    let head = [
        "webhooks",
        "events",
        "deliveries/s",
        "first after, s",
        "repeated",
        "connections",
        "worker us",
        "Postgres us",
        "receivers us",
        "transactions",
        "cores busy",
    ];
    print_table(&head, &[many, one]);
    Ok(())
}

async fn measure(
    webhooks: &Webhooks,
    bench: &WebhookBench,
    name: &str,
    count: u32,
    events: u32,
) -> anyhow::Result<Vec<String>> {
    let delivery_log = Arc::new(DeliveryLog::new(1, (0..events).map(|event| event % count)));
    let reaction = ReceiverBehaviour::Answers(Duration::from_millis(webhooks.answer_ms));
    let group = bench.receivers.group(0, count, reaction, Arc::clone(&delivery_log)).await?;
    let mut setup = WebhookSetup::new(bench, name).await?;
    setup.add_webhooks(&group.urls).await?;
    let (ingest, smtp) = setup.ingest().await?;
    let destination = Destination::mail(smtp, (0..count).map(WebhookSetup::address).collect());
    flow::send(bench.load_thread.handle(), destination, AT_ONCE, Arc::clone(&delivery_log)).await?;
    ingest.stop().await?;
    anyhow::ensure!(setup.waiting().await? == i64::from(events), "not every mail made an event");

    let began = Instant::now();
    let worker = setup.worker().await?;
    let before = Usage::measure(bench, &setup, &worker).await?;
    setup.delivered().await?;
    let in_all = began.elapsed();
    let delta = before.delta_to(Usage::measure(bench, &setup, &worker).await?);
    let times = delivery_log.times(0, |_| true);
    anyhow::ensure!(
        times.missed == 0 && delivery_log.misdelivered() == 0,
        "{} events got lost",
        times.missed
    );
    let busy = (delta.worker + delta.postgres + delta.receivers).as_secs_f64() / delta.time.as_secs_f64();
    let mut row = vec![
        count.to_string(),
        events.to_string(),
        format!("{:.0}", f64::from(events) / group.span().as_secs_f64()),
        format!("{:.2}", in_all.saturating_sub(group.span()).as_secs_f64()),
        times.repeated.to_string(),
        group.connections().to_string(),
    ];
    row.extend(delta.each(events));
    row.push(format!("{busy:.2}"));
    worker.process.stop().await?;
    setup.remove().await?;
    Ok(row)
}
