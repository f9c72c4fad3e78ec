//! `tempmail tenant`

use anyhow::Context as _;
use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tempmail_model::id::PLATFORM_TENANT;
use tempmail_model::limits::{
    TENANT_DOMAINS_MAX, TENANT_MAILBOX_BYTES_MAX, TENANT_MAILBOXES_MAX, TENANT_TOKENS_MAX,
    TENANT_WEBHOOKS_MAX,
};
use tempmail_model::retention::RetentionClass;
use tempmail_model::timestamp::timestamp;
use tempmail_store::{LimitUsage, ManagedBy, SchemaDefinition, Tenant, TenantChange, TenantLimits};

use super::{AdminArgs, Database, explain};
use crate::command::output;

/// Subcommands of `tenant`.
#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Create a tenant
    Create {
        /// Name of the tenant: 1 to 63 of a-z, 0-9 and `-`, starting and ending with a letter or digit
        #[arg(value_parser = tenant_name)]
        name: String,
        #[command(flatten)]
        limits: TenantLimitArgs,
    },
    /// Change the limits of a tenant
    Set {
        /// Name of the tenant
        name: String,
        #[command(flatten)]
        limits: TenantLimitArgs,
    },
    /// Reject requests and mail of a tenant; its data stays
    Suspend {
        /// Name of the tenant
        name: String,
    },
    /// End the suspension of a tenant
    Resume {
        /// Name of the tenant
        name: String,
    },
    /// Delete a tenant with its mailboxes, domains, webhooks, tokens and mail
    Delete {
        /// Name of the tenant
        name: String,
        /// Delete; without it, only print what would be deleted
        #[arg(long)]
        yes: bool,
    },
    /// List the tenants
    List,
    /// Show one tenant
    Show {
        /// Name of the tenant
        name: String,
    },
}

/// Limits of a tenant. Options that are not given keep their value, or the default of a new tenant.
#[derive(Debug, Args)]
pub(crate) struct TenantLimitArgs {
    /// Retention of new mail in hours: 1, 6, 24, 72, 168 or 720
    #[arg(long, value_name = "HOURS", value_parser = retention, allow_negative_numbers = true)]
    retention_hours: Option<RetentionClass>,
    /// Maximum number of mailboxes, up to 1,000,000
    #[arg(long, value_name = "N", value_parser = up_to(TENANT_MAILBOXES_MAX), allow_negative_numbers = true)]
    mailboxes: Option<i32>,
    /// Maximum number of custom domains, up to 100,000
    #[arg(long, value_name = "N", value_parser = up_to(TENANT_DOMAINS_MAX), allow_negative_numbers = true)]
    custom_domains: Option<i32>,
    /// Maximum number of webhooks, up to 100
    #[arg(long, value_name = "N", value_parser = up_to(TENANT_WEBHOOKS_MAX), allow_negative_numbers = true)]
    webhooks: Option<i32>,
    /// Maximum number of API tokens, up to 100,000
    #[arg(long, value_name = "N", value_parser = up_to(TENANT_TOKENS_MAX), allow_negative_numbers = true)]
    tokens: Option<i32>,
    /// Size of each new mailbox in bytes, up to 1,099,511,627,776 (1 TiB)
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(i64).range(1..=TENANT_MAILBOX_BYTES_MAX),
        allow_negative_numbers = true)]
    mailbox_bytes: Option<i64>,
}

/// Parses a number of things from 0 to a maximum.
fn up_to(max: i32) -> RangedI64ValueParser<i32> {
    clap::value_parser!(i32).range(0..=i64::from(max))
}

impl TenantLimitArgs {
    /// The limits of a new tenant.
    fn or_defaults(&self, defaults: &TenantLimits) -> TenantLimits {
        TenantLimits {
            retention: self.retention_hours.unwrap_or(defaults.retention),
            mailboxes: self.mailboxes.unwrap_or(defaults.mailboxes),
            domains: self.custom_domains.unwrap_or(defaults.domains),
            webhooks: self.webhooks.unwrap_or(defaults.webhooks),
            tokens: self.tokens.unwrap_or(defaults.tokens),
            mailbox_bytes: self.mailbox_bytes.unwrap_or(defaults.mailbox_bytes),
        }
    }

    /// The change to an existing tenant; `None` if no option is given.
    fn change(&self) -> Option<TenantChange> {
        let counts = [self.mailboxes, self.custom_domains, self.webhooks, self.tokens];
        let some = self.retention_hours.is_some() || self.mailbox_bytes.is_some();
        (some || counts.iter().any(Option::is_some)).then_some(TenantChange {
            retention: self.retention_hours,
            mailboxes: self.mailboxes,
            domains: self.custom_domains,
            webhooks: self.webhooks,
            tokens: self.tokens,
            mailbox_bytes: self.mailbox_bytes,
        })
    }
}

/// Runs the command and prints the result.
pub(crate) async fn run(args: AdminArgs<TenantCommand>, schema: &SchemaDefinition) -> anyhow::Result<()> {
    let (database, json) = (args.database.connect(schema).await?, args.json);
    match args.command {
        TenantCommand::Create { name, limits } => {
            let defaults = limits.or_defaults(&TenantLimits::pro(database.config.retention.pro_hours));
            let made = database.store.create_tenant(&name, &defaults, database.now).await.map_err(explain)?;
            anyhow::ensure!(made, "there is already a tenant {name}");
            print_result("created", &database, &name, json).await
        }
        TenantCommand::Set { name, limits } => {
            let tenant = find_to_change(&database, &name).await?;
            let change = limits
                .change()
                .context("nothing to change: give at least one option of `tempmail tenant set --help`")?;
            let changed = database.store.change_tenant(tenant.id, change).await.map_err(explain)?;
            anyhow::ensure!(changed, "there is no tenant {name}");
            print_result("changed", &database, &name, json).await
        }
        TenantCommand::Suspend { name } => suspend(&database, &name, true, json).await,
        TenantCommand::Resume { name } => suspend(&database, &name, false, json).await,
        TenantCommand::Delete { name, yes } => delete(&database, &name, yes, json).await,
        TenantCommand::List => list(&database, json).await,
        TenantCommand::Show { name } => {
            let tenant = find(&database, &name).await?;
            if json { output::json(&record(&tenant)) } else { show(&tenant) }
        }
    }
}

/// The tenant with this name.
pub(super) async fn find(database: &Database, name: &str) -> anyhow::Result<Tenant> {
    let found = database.store.find_tenant(name, database.now).await.map_err(explain)?;
    found.with_context(|| format!("there is no tenant {name}"))
}

/// The tenant with this name, unless it has a Kubernetes object, which would revert a change.
async fn find_to_change(database: &Database, name: &str) -> anyhow::Result<Tenant> {
    let tenant = find(database, name).await?;
    anyhow::ensure!(
        tenant.managed_by == ManagedBy::Api,
        "the tenant {name} is managed by Kubernetes: change or delete its Tenant"
    );
    Ok(tenant)
}

async fn suspend(database: &Database, name: &str, suspended: bool, json: bool) -> anyhow::Result<()> {
    let tenant = find_to_change(database, name).await?;
    anyhow::ensure!(
        tenant.id != PLATFORM_TENANT || !suspended,
        "the tenant platform can't be suspended: it receives the mail to postmaster and abuse"
    );
    let changed = database.store.set_tenant_suspended(tenant.id, suspended).await.map_err(explain)?;
    anyhow::ensure!(changed, "there is no tenant {name}");
    print_result(if suspended { "suspended" } else { "resumed" }, database, name, json).await
}

async fn delete(database: &Database, name: &str, yes: bool, json: bool) -> anyhow::Result<()> {
    let tenant = find_to_change(database, name).await?;
    anyhow::ensure!(
        tenant.id != PLATFORM_TENANT,
        "the tenant platform can't be deleted: it receives the mail to postmaster and abuse"
    );
    anyhow::ensure!(
        yes,
        "this would permanently delete the tenant {name} with {}, {}, {}, {} and all mail: confirm with --yes",
        count(tenant.mailboxes, "mailbox", "mailboxes"),
        count(tenant.domains, "custom domain", "custom domains"),
        count(tenant.webhooks, "webhook", "webhooks"),
        count(tenant.tokens, "token", "tokens"),
    );
    let hold_days = database.config.limits.address_hold_days;
    let removed = database.store.remove_tenant(tenant.id, database.now, hold_days).await.map_err(explain)?;
    anyhow::ensure!(removed, "there is no tenant {name}");
    if json {
        return output::json(&json!({"id": tenant.id, "name": tenant.name, "deleted": true}));
    }
    output::line(&format!("deleted tenant {name}"))
}

async fn list(database: &Database, json: bool) -> anyhow::Result<()> {
    let tenants = database.store.list_tenants(database.now).await.map_err(explain)?;
    if json {
        return output::json(&json!({"tenants": tenants.iter().map(record).collect::<Vec<_>>()}));
    }
    let rows: Vec<_> = tenants
        .iter()
        .map(|tenant| {
            [
                tenant.name.clone(),
                state(tenant).to_owned(),
                format!("{} h", tenant.retention.hours()),
                used_of(tenant.mailboxes),
                used_of(tenant.domains),
                used_of(tenant.webhooks),
                used_of(tenant.tokens),
                tenant.stored_bytes.to_string(),
            ]
        })
        .collect();
    let header = ["NAME", "STATE", "RETENTION", "MAILBOXES", "DOMAINS", "WEBHOOKS", "TOKENS", "BYTES"];
    output::table(header, &rows)
}

fn show(tenant: &Tenant) -> anyhow::Result<()> {
    let rows = [
        ("id", tenant.id.to_string()),
        ("state", state(tenant).to_owned()),
        ("retention", format!("{} h", tenant.retention.hours())),
        ("mailboxes", used_of(tenant.mailboxes)),
        ("custom domains", used_of(tenant.domains)),
        ("webhooks", used_of(tenant.webhooks)),
        ("tokens", used_of(tenant.tokens)),
        ("mailbox size", format!("{} bytes", tenant.mailbox_bytes)),
        ("stored", format!("{} bytes", tenant.stored_bytes)),
        ("created", timestamp(tenant.created_at)),
    ];
    output::table(["name", &tenant.name], &rows.map(|(name, value)| [name.to_owned(), value]))
}

/// Prints what was done to a tenant, or the tenant as JSON.
async fn print_result(action: &str, database: &Database, name: &str, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&record(&find(database, name).await?));
    }
    output::line(&format!("{action} tenant {name}"))
}

fn record(tenant: &Tenant) -> Value {
    let share = |share: LimitUsage| json!({"used": share.used, "limit": share.limit});
    json!({
        "id": tenant.id,
        "name": tenant.name,
        "suspended": tenant.suspended,
        "retention_hours": tenant.retention.hours(),
        "mailboxes": share(tenant.mailboxes),
        "custom_domains": share(tenant.domains),
        "webhooks": share(tenant.webhooks),
        "tokens": share(tenant.tokens),
        "mailbox_bytes": tenant.mailbox_bytes,
        "stored_bytes": tenant.stored_bytes,
        "created_at": timestamp(tenant.created_at),
    })
}

fn state(tenant: &Tenant) -> &'static str {
    if tenant.suspended { "suspended" } else { "active" }
}

fn used_of(share: LimitUsage) -> String {
    format!("{} of {}", share.used, share.limit)
}

fn count(share: LimitUsage, one: &str, many: &str) -> String {
    format!("{} {}", share.used, if share.used == 1 { one } else { many })
}

/// A DNS label (RFC 1123).
fn tenant_name(text: &str) -> Result<String, &'static str> {
    let valid = (1..=63).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !text.starts_with('-')
        && !text.ends_with('-');
    if valid {
        Ok(text.to_owned())
    } else {
        Err("a name has 1 to 63 of a-z, 0-9 and `-`, and starts and ends with a letter or digit")
    }
}

fn retention(text: &str) -> Result<RetentionClass, &'static str> {
    let hours = text.parse::<i16>().ok().and_then(|hours| RetentionClass::try_from(hours).ok());
    hours.ok_or("retention is 1, 6, 24, 72, 168 or 720 hours")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_a_dns_label_as_a_name() {
        for name in ["a", "0", "acme-2", &"x".repeat(63)] {
            assert_eq!(tenant_name(name).as_deref(), Ok(name));
        }
        for name in ["", "-a", "a-", "Acme", "a.b", "a_b", "@a", "\u{fc}", &"x".repeat(64)] {
            assert!(tenant_name(name).is_err(), "{name}");
        }
    }
}
