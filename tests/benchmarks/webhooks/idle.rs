//! The load of the worker on Postgres while there is nothing to deliver.

use std::sync::Arc;
use std::time::Duration;

use super::Webhooks;
use super::receivers::ReceiverBehaviour;
use super::setup::{WebhookBench, WebhookSetup};
use super::steady::{delivery_log, send};
use super::usage::Usage;
use crate::environment::describe_machine;
use crate::measure::print_table;

/// Pause until what a start needs is done, and Postgres counts what was done before: a session that
/// is idle reports its transactions after 10 s.
const SETTLE: Duration = Duration::from_secs(12);
/// Time of a measurement.
const REST: Duration = Duration::from_secs(20);

/// Measures without webhooks, with webhooks without events, and with webhooks that failed and are
/// not due.
///
/// # Errors
/// A server does not start.
pub async fn run(webhooks: &Webhooks, bench: &WebhookBench) -> anyhow::Result<()> {
    let count = webhooks.idle_webhooks;
    let mails = delivery_log(1, 0, 0..1);
    let group = bench.receivers.group(0, count, ReceiverBehaviour::Never, mails).await?;
    let mut setup = WebhookSetup::new(bench, "idle").await?;
    let mut rows = vec![row("none", &setup, bench).await?];
    setup.add_webhooks(&group.urls).await?;
    rows.push(row(&format!("{count} without events"), &setup, bench).await?);
    let (ingest, smtp) = setup.ingest().await?;
    let mails = Arc::new(crate::realtime::delivery_log::DeliveryLog::new(1, 0..count));
    send(bench, smtp, count, count, &mails).await?;
    ingest.stop().await?;
    sqlx::query(
        "UPDATE webhook SET failure_count = 5, failed_at = now(), due_at = now() + interval '1 hour'",
    )
    .execute(setup.store.pool())
    .await?;
    rows.push(row(&format!("{count} that failed, an event each, not due"), &setup, bench).await?);
    println!("\nNothing to deliver, for {} s. {}\n", REST.as_secs(), describe_machine(&bench.directory)?);
    print_table(&["webhooks", "worker, ms/s", "Postgres, ms/s", "transactions/s"], &rows);
    setup.remove().await
}

async fn row(what: &str, setup: &WebhookSetup<'_>, bench: &WebhookBench) -> anyhow::Result<Vec<String>> {
    let worker = setup.worker().await?;
    tokio::time::sleep(SETTLE).await;
    let before = Usage::measure(bench, setup, &worker).await?;
    tokio::time::sleep(REST).await;
    let delta = before.delta_to(Usage::measure(bench, setup, &worker).await?);
    worker.process.stop().await?;
    let mut row = vec![what.to_owned()];
    row.extend(delta.a_second());
    Ok(row)
}
