//! What the worker asks of Postgres while there is nothing to deliver.

use std::sync::Arc;
use std::time::Duration;

use super::Webhooks;
use super::installation::{Installation, Site};
use super::receivers::Reaction;
use super::steady::{ledger, send};
use super::usage::Usage;
use crate::measure::print_table;
use crate::smtp::machine;

/// Pause until what a start needs is done, and Postgres counts what was done before: a session that
/// rests tells of its transactions after 10 s.
const SETTLE: Duration = Duration::from_secs(12);
/// Time of a measurement.
const REST: Duration = Duration::from_secs(20);

/// Measures without webhooks, with webhooks without events, and with webhooks that failed and are
/// not due.
///
/// # Errors
/// A server does not start.
pub async fn run(webhooks: &Webhooks, site: &Site) -> anyhow::Result<()> {
    let count = webhooks.idle_webhooks;
    let mails = ledger(1, 0, 0..1);
    let group = site.receivers.group(0, count, Reaction::Never, mails).await?;
    let mut installation = Installation::new(site, "idle").await?;
    let mut rows = vec![row("none", &installation, site).await?];
    installation.add_webhooks(&group.urls).await?;
    rows.push(row(&format!("{count} without events"), &installation, site).await?);
    let (ingest, smtp) = installation.ingest().await?;
    let mails = Arc::new(crate::realtime::ledger::Ledger::new(1, 0..count));
    send(site, smtp, count, count, &mails).await?;
    ingest.stop().await?;
    sqlx::query(
        "UPDATE webhook SET failure_count = 5, failed_at = now(), due_at = now() + interval '1 hour'",
    )
    .execute(installation.store.pool())
    .await?;
    rows.push(row(&format!("{count} that failed, an event each, not due"), &installation, site).await?);
    println!("\nNothing to deliver, for {} s. {}\n", REST.as_secs(), machine(&site.directory)?);
    print_table(&["webhooks", "worker, ms/s", "Postgres, ms/s", "transactions/s"], &rows);
    installation.remove().await
}

async fn row(what: &str, installation: &Installation<'_>, site: &Site) -> anyhow::Result<Vec<String>> {
    let worker = installation.worker().await?;
    tokio::time::sleep(SETTLE).await;
    let before = Usage::now(site, installation, &worker).await?;
    tokio::time::sleep(REST).await;
    let spent = before.until(Usage::now(site, installation, &worker).await?);
    worker.process.stop().await?;
    let mut row = vec![what.to_owned()];
    row.extend(spent.a_second());
    Ok(row)
}
