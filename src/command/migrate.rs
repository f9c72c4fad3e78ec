//! `tempmail migrate`

use tempmail_runtime::config::Config;
use tempmail_runtime::telemetry;
use tempmail_store::{MigrationReport, Store};

/// Migrates the schema. The database user must own the schema; the users of the roles need not.
pub(super) async fn run(config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.telemetry)?;
    let store = Store::connect(config.postgres.url.expose(), 1, "tempmail-migrate")?;
    log_findings(&store.migrate().await?);
    tracing::info!("the schema is up to date");
    Ok(())
}

/// Logs the findings of a migration as warnings.
pub(super) fn log_findings(report: &MigrationReport) {
    for finding in &report.findings {
        tracing::warn!("{finding}");
    }
}
