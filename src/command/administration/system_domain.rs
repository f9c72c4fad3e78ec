//! `tempmail system-domain`

use anyhow::Context as _;
use clap::Subcommand;
use clap::builder::RangedI64ValueParser;
use serde_json::{Value, json};
use tempmail_model::address::normalize_domain;
use tempmail_model::limits::SORT_ORDER_MAX;
use tempmail_model::timestamp::timestamp;
use tempmail_store::{
    ManagedBy, SchemaDefinition, SystemDomainAddition, SystemDomainRemoval, SystemDomainUsage,
};

use super::{AdminArgs, Database, explain};
use crate::command::output;

/// Subcommands of `system-domain`.
#[derive(Debug, Subcommand)]
pub(crate) enum SystemDomainCommand {
    /// Add a domain that all tenants may use, or restore a removed one
    Add {
        /// Name of the domain
        #[arg(value_parser = domain_name)]
        domain: String,
        /// Accept mail for mailboxes only; reject other addresses
        #[arg(long)]
        no_shared_inboxes: bool,
        /// Position in lists, ascending, from -10,000 to 10,000 [default: last]
        #[arg(long, value_name = "N", value_parser = sort_order(), allow_negative_numbers = true)]
        sort_order: Option<i32>,
    },
    /// Change a system domain
    Set {
        /// Name of the domain
        #[arg(value_parser = domain_name)]
        domain: String,
        /// Whether to accept mail for addresses without a mailbox
        #[arg(long, value_name = "BOOL")]
        shared_inboxes: Option<bool>,
        /// Position in lists, ascending, from -10,000 to 10,000
        #[arg(long, value_name = "N", value_parser = sort_order(), allow_negative_numbers = true)]
        sort_order: Option<i32>,
    },
    /// Make a system domain the default
    Default {
        /// Name of the domain
        #[arg(value_parser = domain_name)]
        domain: String,
    },
    /// Remove a system domain
    Remove {
        /// Name of the domain
        #[arg(value_parser = domain_name)]
        domain: String,
        /// Also delete its mailboxes and their mail
        #[arg(long)]
        delete_mailboxes: bool,
    },
    /// List the system domains
    List,
}

/// Parses a position in lists.
fn sort_order() -> RangedI64ValueParser<i32> {
    let max = i64::from(SORT_ORDER_MAX);
    clap::value_parser!(i32).range(-max..=max)
}

/// Runs the command and prints the result.
pub(crate) async fn run(
    args: AdminArgs<SystemDomainCommand>,
    schema: &SchemaDefinition,
) -> anyhow::Result<()> {
    let (database, json) = (args.database.connect(schema).await?, args.json);
    let store = &database.store;
    match args.command {
        SystemDomainCommand::Add { domain, no_shared_inboxes, sort_order } => {
            let shared = no_shared_inboxes.then_some(false);
            let added = store.add_system_domain(&domain, shared, sort_order, database.now).await;
            match added.map_err(explain)? {
                SystemDomainAddition::Added => print_result("added", &database, &domain, json).await,
                SystemDomainAddition::AlreadyServes => anyhow::bail!("{domain} is already a system domain"),
                SystemDomainAddition::Overlaps(custom) => Err(overlap_error(&domain, &custom)),
            }
        }
        SystemDomainCommand::Set { domain, shared_inboxes, sort_order } => {
            anyhow::ensure!(
                shared_inboxes.is_some() || sort_order.is_some(),
                "nothing to change: give at least one option of `tempmail system-domain set --help`"
            );
            ensure_not_managed(&database, &domain).await?;
            let changed = store.change_system_domain(&domain, shared_inboxes, sort_order).await;
            anyhow::ensure!(changed.map_err(explain)?, "there is no system domain {domain}");
            print_result("changed", &database, &domain, json).await
        }
        SystemDomainCommand::Default { domain } => {
            ensure_not_managed(&database, &domain).await?;
            ensure_default_not_managed(&database).await?;
            let made = store.set_default_system_domain(&domain).await.map_err(explain)?;
            anyhow::ensure!(made, "there is no system domain {domain}");
            print_result("default is now", &database, &domain, json).await
        }
        SystemDomainCommand::Remove { domain, delete_mailboxes } => {
            ensure_not_managed(&database, &domain).await?;
            let hold_days = database.config.limits.address_hold_days;
            let removal =
                store.remove_system_domain(&domain, delete_mailboxes, database.now, hold_days).await;
            check_removal(&domain, removal.map_err(explain)?)?;
            if json {
                return output::json(&json!({"domain": domain, "removed": true}));
            }
            output::line(&format!("removed {domain}"))
        }
        SystemDomainCommand::List => list(&database, json).await,
    }
}

/// Fails if the domain has a Kubernetes object, which would revert a change.
async fn ensure_not_managed(database: &Database, domain: &str) -> anyhow::Result<()> {
    let domains = database.store.list_system_domain_usage().await.map_err(explain)?;
    let is_managed = |it: &SystemDomainUsage| it.name == domain && it.managed_by == ManagedBy::Kubernetes;
    anyhow::ensure!(
        !domains.iter().any(is_managed),
        "{domain} is managed by Kubernetes: change or delete its SystemDomain"
    );
    Ok(())
}

/// Fails if the default domain has a Kubernetes object, which would revert a change.
async fn ensure_default_not_managed(database: &Database) -> anyhow::Result<()> {
    let domains = database.store.list_system_domain_usage().await.map_err(explain)?;
    let managed = domains.iter().find(|it| it.is_default && it.managed_by == ManagedBy::Kubernetes);
    if let Some(SystemDomainUsage { name, .. }) = managed {
        anyhow::bail!(
            "the default system domain {name} is managed by Kubernetes: change the default in a SystemDomain"
        );
    }
    Ok(())
}

/// Why a name can't be a system domain beside a custom domain.
pub(crate) fn overlap_error(domain: &str, custom: &str) -> anyhow::Error {
    if domain == custom {
        return anyhow::anyhow!("{domain} can't be a system domain: it is the custom domain of a tenant");
    }
    anyhow::anyhow!("{domain} can't be a system domain: it overlaps {custom}, the custom domain of a tenant")
}

/// Fails unless the domain was removed.
fn check_removal(domain: &str, removal: SystemDomainRemoval) -> anyhow::Result<()> {
    match removal {
        SystemDomainRemoval::Removed => Ok(()),
        SystemDomainRemoval::NotFound => anyhow::bail!("there is no system domain {domain}"),
        SystemDomainRemoval::LastOne => {
            anyhow::bail!("{domain} is the only system domain: add another one first")
        }
        SystemDomainRemoval::IsDefault => anyhow::bail!(
            "{domain} is the default system domain: make another one the default first (`tempmail system-domain default`)"
        ),
        SystemDomainRemoval::InUse(count) => anyhow::bail!(
            "{domain} has {count} {}: use --delete-mailboxes to delete them with their mail",
            if count == 1 { "mailbox" } else { "mailboxes" }
        ),
    }
}

async fn list(database: &Database, json: bool) -> anyhow::Result<()> {
    let domains = database.store.list_system_domain_usage().await.map_err(explain)?;
    if json {
        return output::json(&json!({"system_domains": domains.iter().map(record).collect::<Vec<_>>()}));
    }
    let yes_or_no = |it: bool| if it { "yes" } else { "no" }.to_owned();
    let rows: Vec<_> = domains
        .iter()
        .map(|domain| {
            [
                domain.name.clone(),
                yes_or_no(domain.is_default),
                domain.sort_order.to_string(),
                yes_or_no(domain.shared_inboxes),
                domain.mailboxes.to_string(),
            ]
        })
        .collect();
    output::table(["DOMAIN", "DEFAULT", "ORDER", "SHARED INBOXES", "MAILBOXES"], &rows)
}

/// Prints what was done to a domain, or the domain as JSON.
async fn print_result(action: &str, database: &Database, domain: &str, json: bool) -> anyhow::Result<()> {
    if !json {
        return output::line(&format!("{action} {domain}"));
    }
    let domains = database.store.list_system_domain_usage().await.map_err(explain)?;
    let found = domains.iter().find(|found| found.name == domain);
    output::json(&record(found.with_context(|| format!("there is no system domain {domain}"))?))
}

fn record(domain: &SystemDomainUsage) -> Value {
    json!({
        "id": domain.id,
        "domain": domain.name,
        "default": domain.is_default,
        "sort_order": domain.sort_order,
        "shared_inboxes": domain.shared_inboxes,
        "mailboxes": domain.mailboxes,
        "created_at": timestamp(domain.created_at),
    })
}

fn domain_name(text: &str) -> Result<String, &'static str> {
    normalize_domain(text).map_err(|_malformed| "not a host name")
}
