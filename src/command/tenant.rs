//! `tempmail tenant`

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tempmail_model::id::PLATFORM_TENANT;
use tempmail_model::retention::RetentionClass;
use tempmail_model::timestamp::timestamp;
use tempmail_store::{LimitUsage, ManagedBy, Tenant, TenantChange, TenantLimits};

use super::database::{Administration, Database, explain};
use super::output;

/// What `tenant` does.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Make a tenant
    Create {
        /// 1 to 63 of a-z, 0-9 and `-`, a letter or digit first and last
        #[arg(value_parser = tenant_name)]
        name: String,
        #[command(flatten)]
        limits: Limits,
    },
    /// Change what a tenant may have
    Set {
        /// Name of the tenant
        name: String,
        #[command(flatten)]
        limits: Limits,
    },
    /// Refuse a tenant everywhere; it keeps what it has
    Suspend {
        /// Name of the tenant
        name: String,
    },
    /// Let a suspended tenant in again
    Resume {
        /// Name of the tenant
        name: String,
    },
    /// Delete a tenant with its mailboxes, domains, webhooks, tokens and mail
    Delete {
        /// Name of the tenant
        name: String,
        /// Really
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

/// What a tenant may have; what is not given stays, or is what new tenants have.
#[derive(Debug, Args)]
pub struct Limits {
    /// Hours that new mail is kept: 1, 6, 24, 72, 168 or 720
    #[arg(long, value_name = "HOURS", value_parser = retention, allow_negative_numbers = true)]
    retention_hours: Option<RetentionClass>,
    /// Mailboxes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..), allow_negative_numbers = true)]
    mailboxes: Option<i32>,
    /// Custom domains
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..), allow_negative_numbers = true)]
    custom_domains: Option<i32>,
    /// Webhooks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..), allow_negative_numbers = true)]
    webhooks: Option<i32>,
    /// API tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..), allow_negative_numbers = true)]
    tokens: Option<i32>,
    /// Octets of each new mailbox
    #[arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(i64).range(1..), allow_negative_numbers = true)]
    mailbox_bytes: Option<i64>,
}

impl Limits {
    /// Those of a new tenant.
    fn over(&self, defaults: &TenantLimits) -> TenantLimits {
        TenantLimits {
            retention: self.retention_hours.unwrap_or(defaults.retention),
            mailboxes: self.mailboxes.unwrap_or(defaults.mailboxes),
            domains: self.custom_domains.unwrap_or(defaults.domains),
            webhooks: self.webhooks.unwrap_or(defaults.webhooks),
            tokens: self.tokens.unwrap_or(defaults.tokens),
            mailbox_bytes: self.mailbox_bytes.unwrap_or(defaults.mailbox_bytes),
        }
    }

    /// The change of one that is there; `None` where there is none.
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

/// Does it and says so.
pub async fn run(options: Administration<Action>) -> anyhow::Result<()> {
    let (database, json) = (options.place.open().await?, options.json);
    match options.action {
        Action::Create { name, limits } => {
            let defaults = limits.over(&TenantLimits::pro(database.config.retention.pro_hours));
            let made = database.store.create_tenant(&name, &defaults, database.now).await.map_err(explain)?;
            anyhow::ensure!(made, "there is a tenant {name} already");
            done("created", &database, &name, json).await
        }
        Action::Set { name, limits } => {
            let tenant = find_to_change(&database, &name).await?;
            let change = limits.change().context("nothing to change: see `tempmail tenant set --help`")?;
            let changed = database.store.change_tenant(tenant.id, change).await.map_err(explain)?;
            anyhow::ensure!(changed, "there is no tenant {name}");
            done("changed", &database, &name, json).await
        }
        Action::Suspend { name } => suspend(&database, &name, true, json).await,
        Action::Resume { name } => suspend(&database, &name, false, json).await,
        Action::Delete { name, yes } => delete(&database, &name, yes, json).await,
        Action::List => list(&database, json).await,
        Action::Show { name } => {
            let tenant = find(&database, &name).await?;
            if json { output::json(&record(&tenant)) } else { show(&tenant) }
        }
    }
}

/// The tenant of this name.
pub async fn find(database: &Database, name: &str) -> anyhow::Result<Tenant> {
    let found = database.store.find_tenant(name, database.now).await.map_err(explain)?;
    found.with_context(|| format!("there is no tenant {name}"))
}

/// The tenant of this name, unless its object would change it back.
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
        "the tenant platform can't be suspended: it has the mail to postmaster and abuse"
    );
    let changed = database.store.set_tenant_suspended(tenant.id, suspended).await.map_err(explain)?;
    anyhow::ensure!(changed, "there is no tenant {name}");
    done(if suspended { "suspended" } else { "resumed" }, database, name, json).await
}

async fn delete(database: &Database, name: &str, yes: bool, json: bool) -> anyhow::Result<()> {
    let tenant = find_to_change(database, name).await?;
    anyhow::ensure!(
        tenant.id != PLATFORM_TENANT,
        "the tenant platform can't be deleted: it has the mail to postmaster and abuse"
    );
    anyhow::ensure!(
        yes,
        "this would delete the tenant {name} for good, with {}, {}, {}, {} and all mail: say --yes",
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
                of(tenant.mailboxes),
                of(tenant.domains),
                of(tenant.webhooks),
                of(tenant.tokens),
                tenant.stored_bytes.to_string(),
            ]
        })
        .collect();
    let heads = ["NAME", "STATE", "KEPT", "MAILBOXES", "DOMAINS", "WEBHOOKS", "TOKENS", "OCTETS"];
    output::table(heads, &rows)
}

fn show(tenant: &Tenant) -> anyhow::Result<()> {
    let rows = [
        ("id", tenant.id.to_string()),
        ("state", state(tenant).to_owned()),
        ("mail is kept", format!("{} h", tenant.retention.hours())),
        ("mailboxes", of(tenant.mailboxes)),
        ("custom domains", of(tenant.domains)),
        ("webhooks", of(tenant.webhooks)),
        ("tokens", of(tenant.tokens)),
        ("new mailbox", format!("{} octets", tenant.mailbox_bytes)),
        ("stored", format!("{} octets", tenant.stored_bytes)),
        ("created", timestamp(tenant.created_at)),
    ];
    output::table(["name", &tenant.name], &rows.map(|(head, value)| [head.to_owned(), value]))
}

/// Says what was done to a tenant; as JSON, what it is now.
async fn done(what: &str, database: &Database, name: &str, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&record(&find(database, name).await?));
    }
    output::line(&format!("{what} tenant {name}"))
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

fn of(share: LimitUsage) -> String {
    format!("{} of {}", share.used, share.limit)
}

fn count(share: LimitUsage, one: &str, many: &str) -> String {
    format!("{} {}", share.used, if share.used == 1 { one } else { many })
}

/// A label of RFC 1123.
fn tenant_name(text: &str) -> Result<String, &'static str> {
    let fits = (1..=63).contains(&text.len())
        && text.bytes().all(|octet| matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !text.starts_with('-')
        && !text.ends_with('-');
    if fits {
        Ok(text.to_owned())
    } else {
        Err("a name is 1 to 63 of a-z, 0-9 and `-`, a letter or digit first and last")
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
    fn a_name_is_a_label() {
        for name in ["a", "0", "acme-2", &"x".repeat(63)] {
            assert_eq!(tenant_name(name).as_deref(), Ok(name));
        }
        for name in ["", "-a", "a-", "Acme", "a.b", "a_b", "@a", "\u{fc}", &"x".repeat(64)] {
            assert!(tenant_name(name).is_err(), "{name}");
        }
    }
}
