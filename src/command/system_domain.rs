//! `tempmail system-domain`

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value, json};
use tempmail_model::address::normalize_domain;
use tempmail_model::timestamp::timestamp;
use tempmail_store::{ManagedBy, SystemDomainAddition, SystemDomainRemoval, SystemDomainUsage};

use super::database::{Administration, Database, explain};
use super::output;

/// What `system-domain` does.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add a domain that everybody may use; one that was removed serves again
    Add {
        /// Its name
        #[arg(value_parser = domain_name)]
        domain: String,
        /// Only mailboxes receive: addresses that nobody made are unknown
        #[arg(long)]
        no_shared_inboxes: bool,
        /// Place in lists, ascending [default: the last]
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        sort_order: Option<i32>,
    },
    /// Change a system domain
    Set {
        /// Its name
        #[arg(value_parser = domain_name)]
        domain: String,
        /// Whether addresses that nobody made receive
        #[arg(long, value_name = "BOOL")]
        shared_inboxes: Option<bool>,
        /// Place in lists, ascending
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        sort_order: Option<i32>,
    },
    /// Make a system domain the default one
    Default {
        /// Its name
        #[arg(value_parser = domain_name)]
        domain: String,
    },
    /// Take a system domain out of service
    Remove {
        /// Its name
        #[arg(value_parser = domain_name)]
        domain: String,
        /// Delete its mailboxes with their mail, too
        #[arg(long)]
        delete_mailboxes: bool,
    },
    /// List the system domains
    List,
}

/// Does it and says so.
pub async fn run(options: Administration<Action>) -> anyhow::Result<()> {
    let (database, json) = (options.place.open().await?, options.json);
    let store = &database.store;
    match options.action {
        Action::Add { domain, no_shared_inboxes, sort_order } => {
            let shared = no_shared_inboxes.then_some(false);
            let added = store.add_system_domain(&domain, shared, sort_order, database.now).await;
            match added.map_err(explain)? {
                SystemDomainAddition::Added => done("added", &database, &domain, json).await,
                SystemDomainAddition::AlreadyServes => anyhow::bail!("{domain} is a system domain already"),
                SystemDomainAddition::Overlaps(custom) => Err(meets(&domain, &custom)),
            }
        }
        Action::Set { domain, shared_inboxes, sort_order } => {
            anyhow::ensure!(
                shared_inboxes.is_some() || sort_order.is_some(),
                "nothing to change: see `tempmail system-domain set --help`"
            );
            leave_to_kubernetes(&database, &domain).await?;
            let changed = store.change_system_domain(&domain, shared_inboxes, sort_order).await;
            anyhow::ensure!(changed.map_err(explain)?, "there is no system domain {domain}");
            done("changed", &database, &domain, json).await
        }
        Action::Default { domain } => {
            leave_to_kubernetes(&database, &domain).await?;
            leave_default_to_kubernetes(&database).await?;
            let made = store.set_default_system_domain(&domain).await.map_err(explain)?;
            anyhow::ensure!(made, "there is no system domain {domain}");
            done("default is now", &database, &domain, json).await
        }
        Action::Remove { domain, delete_mailboxes } => {
            leave_to_kubernetes(&database, &domain).await?;
            let hold_days = database.config.limits.address_hold_days;
            let removal =
                store.remove_system_domain(&domain, delete_mailboxes, database.now, hold_days).await;
            refuse(&domain, removal.map_err(explain)?)?;
            if json {
                return output::json(&json!({"domain": domain, "removed": true}));
            }
            output::line(&format!("removed {domain}"))
        }
        Action::List => list(&database, json).await,
    }
}

/// Refuses to change what its object would change back.
async fn leave_to_kubernetes(database: &Database, domain: &str) -> anyhow::Result<()> {
    let domains = database.store.list_system_domain_usage().await.map_err(explain)?;
    let is_managed = |it: &SystemDomainUsage| it.name == domain && it.managed_by == ManagedBy::Kubernetes;
    anyhow::ensure!(
        !domains.iter().any(is_managed),
        "{domain} is managed by Kubernetes: change or delete its SystemDomain"
    );
    Ok(())
}

/// Refuses to make another domain the default one where an object may say which one is.
async fn leave_default_to_kubernetes(database: &Database) -> anyhow::Result<()> {
    let domains = database.store.list_system_domain_usage().await.map_err(explain)?;
    let managed = domains.iter().find(|it| it.is_default && it.managed_by == ManagedBy::Kubernetes);
    if let Some(SystemDomainUsage { name, .. }) = managed {
        anyhow::bail!(
            "the default one, {name}, is managed by Kubernetes: make another one that by a SystemDomain"
        );
    }
    Ok(())
}

/// Why a custom domain keeps a name from being a system domain.
pub fn meets(domain: &str, custom: &str) -> anyhow::Error {
    if domain == custom {
        return anyhow::anyhow!("{domain} can't be a system domain: it is a tenant's custom domain");
    }
    anyhow::anyhow!("{domain} can't be a system domain beside {custom}, a tenant's custom domain")
}

/// Why it still serves, if it does.
fn refuse(domain: &str, removal: SystemDomainRemoval) -> anyhow::Result<()> {
    match removal {
        SystemDomainRemoval::Removed => Ok(()),
        SystemDomainRemoval::NotFound => anyhow::bail!("there is no system domain {domain}"),
        SystemDomainRemoval::LastOne => {
            anyhow::bail!("{domain} is the only system domain: add another one first")
        }
        SystemDomainRemoval::IsDefault => anyhow::bail!(
            "{domain} is the default one: make another one that first (`tempmail system-domain default`)"
        ),
        SystemDomainRemoval::InUse(count) => anyhow::bail!(
            "{domain} is used by {count} {}: --delete-mailboxes deletes them with their mail",
            if count == 1 { "mailbox" } else { "mailboxes" }
        ),
    }
}

async fn list(database: &Database, json: bool) -> anyhow::Result<()> {
    let domains = database.store.list_system_domain_usage().await.map_err(explain)?;
    if json {
        return output::json(&json!({"system_domains": domains.iter().map(record).collect::<Vec<_>>()}));
    }
    let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
    let rows: Vec<_> = domains
        .iter()
        .map(|domain| {
            [
                domain.name.clone(),
                yes(domain.is_default),
                domain.sort_order.to_string(),
                yes(domain.shared_inboxes),
                domain.mailboxes.to_string(),
            ]
        })
        .collect();
    output::table(["DOMAIN", "DEFAULT", "ORDER", "SHARED INBOXES", "MAILBOXES"], &rows)
}

/// Says what was done to a domain; as JSON, what it is now.
async fn done(what: &str, database: &Database, domain: &str, json: bool) -> anyhow::Result<()> {
    if !json {
        return output::line(&format!("{what} {domain}"));
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
    normalize_domain(text).map_err(|_malformed| "this is not a host name")
}
