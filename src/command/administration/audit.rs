//! `tempmail audit`

use clap::Args;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tempmail_model::timestamp::timestamp;
use tempmail_store::{AuditEntry, SchemaDefinition};

use super::tenant::find;
use super::{DatabaseArgs, explain};
use crate::command::output;

/// What to list.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Name of a tenant [default: all]
    #[arg(long)]
    tenant: Option<String>,
    /// How far back, up to 400 days
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(i64).range(1..=9600))]
    hours: i64,
    /// The last entries of that time only
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Lists entries, oldest first.
pub(crate) async fn run(args: AuditArgs, schema: &SchemaDefinition) -> anyhow::Result<()> {
    let database = args.database.connect(schema).await?;
    let tenant = match &args.tenant {
        Some(name) => Some(find(&database, name).await?.id),
        None => None,
    };
    let since = database.now - SignedDuration::from_hours(args.hours);
    let entries = database.store.list_audit(tenant, since, args.limit).await.map_err(explain)?;
    if args.json {
        return output::json(&entries.iter().map(record).collect::<Value>());
    }
    let rows: Vec<[String; 6]> = entries.iter().map(row).collect();
    output::table(["TIME", "ACTOR", "ACTION", "KIND", "SUBJECT", "TENANT"], &rows)
}

fn record(entry: &AuditEntry) -> Value {
    json!({
        "id": entry.id, "time": timestamp(entry.at()), "actor": entry.actor, "login": entry.login,
        "action": entry.action, "kind": entry.kind, "subject": entry.subject, "tenant": entry.tenant,
    })
}

fn row(entry: &AuditEntry) -> [String; 6] {
    let tenant = entry.tenant.map(|tenant| tenant.to_string()).unwrap_or_default();
    let text = [&entry.actor, &entry.action, &entry.kind, &entry.subject].map(Clone::clone);
    let [actor, action, kind, subject] = text;
    [timestamp(entry.at()), actor, action, kind, subject, tenant]
}
