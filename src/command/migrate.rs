//! `tempmail migrate`

use std::io::Write as _;
use std::time::Duration;

use tempmail_model::role_prefix::RolePrefix;
use tempmail_runtime::config::Config;
use tempmail_runtime::telemetry;
use tempmail_store::{MigrationReport, SchemaDefinition, SchemaError, Store};
use tokio::time::{Instant, sleep};

/// How long Postgres may be unavailable, and the time between two attempts.
const WAIT: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_secs(1);

/// Migrates the schema, and gives the group roles their rights. The login must own the schema; those of the roles need
/// not. A newer schema stays as it is: pods of a version that was rolled back run the migration of that version.
pub(super) async fn run(config: Config, schema: &SchemaDefinition) -> anyhow::Result<()> {
    telemetry::init(&config)?;
    let store = Store::connect(config.postgres.url.expose(), 1, "tempmail-migrate")?;
    match migrate_once_available(&store, schema, &config.postgres.role_prefix).await {
        Ok(report) => {
            log_findings(&report);
            print_refused(&report)?;
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

async fn migrate_once_available(
    store: &Store,
    schema: &SchemaDefinition,
    prefix: &RolePrefix,
) -> Result<MigrationReport, SchemaError> {
    let give_up = Instant::now() + WAIT;
    loop {
        match schema.migrate(store, prefix).await {
            Err(SchemaError::Store(error)) if error.is_unavailable() && Instant::now() < give_up => {
                tracing::warn!(%error, "waiting for Postgres");
                sleep(RETRY).await;
            }
            ended => return ended,
        }
    }
}

/// Prints what an administrator has to do before logins of the roles' own can be used.
fn print_refused(report: &MigrationReport) -> anyhow::Result<()> {
    if report.refused.is_empty() {
        return Ok(());
    }
    tracing::warn!(
        "this login may not run the statements on standard output: let an administrator run them and migrate again, or \
         let all processes use this login"
    );
    let mut stdout = std::io::stdout().lock();
    for statement in &report.refused {
        writeln!(stdout, "{statement};")?;
    }
    Ok(())
}

/// Logs the findings of a migration as warnings.
pub(super) fn log_findings(report: &MigrationReport) {
    for finding in &report.findings {
        tracing::warn!("{finding}");
    }
}
