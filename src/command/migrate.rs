//! `tempmail migrate`

use tempmail_runtime::config::Config;
use tempmail_runtime::telemetry;
use tempmail_store::{MigrationReport, Store};

/// Brings the schema up. Its database user must own the schema; the roles' users need not.
pub async fn run(config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.telemetry)?;
    let store = Store::connect(config.postgres.url.expose(), 1, "tempmail-migrate")?;
    log(&store.migrate().await?);
    tracing::info!("the schema is up to date");
    Ok(())
}

/// Logs what was found, a warning each.
pub fn log(report: &MigrationReport) {
    for finding in &report.findings {
        tracing::warn!("{finding}");
    }
}
