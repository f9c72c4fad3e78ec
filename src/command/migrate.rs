//! `tempmail migrate`

use std::time::Duration;

use tempmail_runtime::config::Config;
use tempmail_runtime::telemetry;
use tempmail_store::{MigrationReport, SchemaError, Store};
use tokio::time::{Instant, sleep};

/// How long Postgres may be unavailable, and the time between two attempts.
const WAIT: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_secs(1);

/// Migrates the schema. The database user must own the schema; the users of the roles need not. A newer schema stays
/// as it is: pods of a version that was rolled back run the migration of that version.
pub(super) async fn run(config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.telemetry)?;
    let store = Store::connect(config.postgres.url.expose(), 1, "tempmail-migrate")?;
    match migrate_once_available(&store).await {
        Ok(report) => {
            log_findings(&report);
            tracing::info!("the schema is up to date");
        }
        Err(SchemaError::Newer { found, needed }) => {
            tracing::warn!(
                "the schema is at version {found}, newer than this program ({needed}): it stays as it is"
            );
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

async fn migrate_once_available(store: &Store) -> Result<MigrationReport, SchemaError> {
    let give_up = Instant::now() + WAIT;
    loop {
        match store.migrate().await {
            Err(SchemaError::Store(error)) if error.is_unavailable() && Instant::now() < give_up => {
                tracing::warn!(%error, "waiting for Postgres");
                sleep(RETRY).await;
            }
            ended => return ended,
        }
    }
}

/// Logs the findings of a migration as warnings.
pub(super) fn log_findings(report: &MigrationReport) {
    for finding in &report.findings {
        tracing::warn!("{finding}");
    }
}
