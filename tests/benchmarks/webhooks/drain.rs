//! A backlog is delivered, with nothing else to do: mail comes while no worker runs, and then one is
//! started.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Webhooks;
use super::installation::{Installation, Site};
use super::receivers::Reaction;
use super::usage::Usage;
use crate::measure::print_table;
use crate::realtime::flow::{self, Destination};
use crate::realtime::ledger::Ledger;
use crate::smtp::machine;

/// More mails a second than there can be.
const AT_ONCE: u32 = 1_000_000;

/// Measures many webhooks, and one alone.
///
/// # Errors
/// A server does not start, or an event is not delivered.
pub async fn run(webhooks: &Webhooks, site: &Site) -> anyhow::Result<()> {
    let many = measure(webhooks, site, "drain_many", webhooks.webhooks, webhooks.events).await?;
    let one = measure(webhooks, site, "drain_one", 1, webhooks.events_of_one).await?;
    println!(
        "\nA backlog; receivers answer after {} ms. {}\n",
        webhooks.answer_ms,
        machine(&site.directory)?
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
    site: &Site,
    name: &str,
    count: u32,
    events: u32,
) -> anyhow::Result<Vec<String>> {
    let ledger = Arc::new(Ledger::new(1, (0..events).map(|event| event % count)));
    let reaction = Reaction::Answers(Duration::from_millis(webhooks.answer_ms));
    let group = site.receivers.group(0, count, reaction, Arc::clone(&ledger)).await?;
    let mut installation = Installation::new(site, name).await?;
    installation.add_webhooks(&group.urls).await?;
    let (ingest, smtp) = installation.ingest().await?;
    let destination = Destination::mail(smtp, (0..count).map(Installation::address).collect());
    flow::send(site.generator.handle(), destination, AT_ONCE, Arc::clone(&ledger)).await?;
    ingest.stop().await?;
    anyhow::ensure!(installation.waiting().await? == i64::from(events), "not every mail made an event");

    let began = Instant::now();
    let worker = installation.worker().await?;
    let before = Usage::now(site, &installation, &worker).await?;
    installation.delivered().await?;
    let in_all = began.elapsed();
    let spent = before.until(Usage::now(site, &installation, &worker).await?);
    let times = ledger.times(0, |_| true);
    anyhow::ensure!(times.missed == 0 && ledger.strays() == 0, "{} events got lost", times.missed);
    let busy = (spent.worker + spent.postgres + spent.receivers).as_secs_f64() / spent.time.as_secs_f64();
    let mut row = vec![
        count.to_string(),
        events.to_string(),
        format!("{:.0}", f64::from(events) / group.span().as_secs_f64()),
        format!("{:.2}", in_all.saturating_sub(group.span()).as_secs_f64()),
        times.repeated.to_string(),
        group.connections().to_string(),
    ];
    row.extend(spent.each(events));
    row.push(format!("{busy:.2}"));
    worker.process.stop().await?;
    installation.remove().await?;
    Ok(row)
}
