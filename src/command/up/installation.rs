//! What `up` creates in the database: schema, tenant, domains, tokens.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_model::token::{PlainToken, TokenHash, TokenKind};
use tempmail_runtime::config::Config;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{
    Actor, NewToken, SchemaDefinition, SchemaError, Store, StoreError, SystemDomainAddition, TenantLimits,
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::credentials::{CREDENTIALS_FILE, Credentials};
use super::settings::reachable;
use super::welcome;
use crate::command::administration::system_domain::overlap_error;
use crate::command::data_directory::{self, DataDirectory};
use crate::command::migrate;
use crate::process::clock_sync;

/// The tenant that `up` creates, for the user of this machine.
const TENANT: &str = "local";
/// The system domain of a new installation.
const DOMAIN: &str = "inbox.localhost";

/// How long Postgres may be unavailable at the start, as on a machine that is busy, and the time between two attempts.
const WAIT: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_secs(1);

/// A database that is ready for the roles.
pub(super) struct Installation {
    /// A connection that no role uses.
    pub store: Store,
    /// Synchronized with Postgres' time.
    pub clock: Arc<SystemClock>,
    /// What the process still waits for.
    pub readiness: Readiness,
    /// The system domains in service; the first one is the one to try.
    pub domains: Vec<String>,
    /// The contents of `credentials.json`.
    pub credentials: Credentials,
    /// The tenant of the user of this machine.
    pub tenant: Uuid,
    /// The stream of arrivals.
    pub stream: Uuid,
}

/// As [`prepare`], as soon as Postgres is available. What an attempt that failed has created, the next one finds.
pub(super) async fn prepare_once_available(
    config: &Config,
    schema: &SchemaDefinition,
    domains: &[String],
    directory: &DataDirectory,
) -> anyhow::Result<Installation> {
    let give_up = Instant::now() + WAIT;
    loop {
        match prepare(config, schema, domains, directory).await {
            Err(error) if is_unavailable(&error) && Instant::now() < give_up => {
                welcome::print_progress(&format!("waiting for Postgres ({error})"));
                sleep(RETRY).await;
            }
            prepared => return prepared,
        }
    }
}

/// Whether an attempt failed because Postgres is not available.
fn is_unavailable(error: &anyhow::Error) -> bool {
    let error = match error.downcast_ref() {
        Some(SchemaError::Store(error)) => Some(error),
        _ => error.downcast_ref(),
    };
    error.is_some_and(StoreError::is_unavailable)
}

/// Migrates the database and creates the tenant, its tokens and the domains where they are missing.
async fn prepare(
    config: &Config,
    schema: &SchemaDefinition,
    domains: &[String],
    directory: &DataDirectory,
) -> anyhow::Result<Installation> {
    let store = Store::connect(config.postgres.url.expose(), 2, "tempmail-up")
        .context("`postgres.url` is not a Postgres URL")?;
    match schema.migrate(&store, &config.postgres.role_prefix).await {
        // All roles use one login here, so that statements that it may not run are of no interest.
        Ok(report) => migrate::log_findings(&report),
        // It may be compatible.
        Err(SchemaError::Newer { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    schema.check(&store).await?;
    let (clock, readiness) = (Arc::new(SystemClock::default()), Readiness::default());
    clock_sync::measure(&store, &clock, &readiness).await?;
    store.record_free_class(config.retention.free_hours).await?;
    let acting = store.acting(Actor::Command);
    let domains = ensure_domains(&acting, domains, clock.now()).await?;
    let tenant =
        acting.ensure_tenant(TENANT, &TenantLimits::pro(config.retention.pro_hours), clock.now()).await?;
    let credentials = ensure_credentials(config, directory, &acting, tenant, clock.now()).await?;
    let stream = store.stream_id().await?;
    Ok(Installation { store, clock, readiness, domains, credentials, tenant, stream })
}

/// Adds the requested system domains, and a default one if there would be none. Returns all that are
/// in service: first one with shared inboxes, whose addresses receive without a mailbox.
async fn ensure_domains(store: &Store, requested: &[String], now: Timestamp) -> anyhow::Result<Vec<String>> {
    let mut missing = requested.to_vec();
    if missing.is_empty() && store.list_system_domains().await?.is_empty() {
        missing.push(DOMAIN.to_owned());
    }
    for domain in missing {
        if let SystemDomainAddition::Overlaps(custom) =
            store.add_system_domain(&domain, None, None, now).await?
        {
            return Err(overlap_error(&domain, &custom));
        }
    }
    let mut domains = store.list_system_domain_usage().await?;
    domains.sort_by_key(|domain| {
        (!domain.shared_inboxes, !requested.contains(&domain.name), !domain.is_default)
    });
    Ok(domains.into_iter().map(|domain| domain.name).collect())
}

/// The tokens of `credentials.json`. Tokens that are missing, revoked or from another database are
/// replaced. They are stored before the file is written, so that the file has working tokens only.
async fn ensure_credentials(
    config: &Config,
    directory: &DataDirectory,
    store: &Store,
    tenant: Uuid,
    now: Timestamp,
) -> anyhow::Result<Credentials> {
    let path = directory.path().join(CREDENTIALS_FILE);
    let text = data_directory::read(&path)?;
    let existing: Option<Credentials> = text.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let (pro, live) = existing.map(|it| (it.pro_token, it.live_token)).unzip();
    let credentials = Credentials {
        base_url: config.http.base_url.clone(),
        smtp: reachable(config.smtp.listen).to_string(),
        pro_token: ensure_token(store, tenant, TokenKind::Pro, pro, now).await?,
        live_token: ensure_token(store, tenant, TokenKind::Live, live, now).await?,
    };
    let written = format!("{}\n", serde_json::to_string_pretty(&credentials)?);
    if text.as_deref() != Some(&written) {
        data_directory::write_private(&path, &written)?;
    }
    Ok(credentials)
}

/// The given token if it is valid, otherwise a new one.
async fn ensure_token(
    store: &Store,
    tenant: Uuid,
    kind: TokenKind,
    existing: Option<String>,
    now: Timestamp,
) -> anyhow::Result<String> {
    if let Some(existing) = existing
        && let Some(hash) = TokenHash::from_presented(kind, &existing)
        && let Some(found) = store.find_token(kind, hash).await?
        && found.active
        && found.revoked_at.is_none()
        && found.expires_at.is_none_or(|expiry| expiry > now)
    {
        return Ok(existing);
    }
    let token = PlainToken::generate(kind).context("the operating system provides no randomness")?;
    let new = NewToken {
        tenant,
        kind,
        name: "up",
        token: &token,
        surfaces: &[],
        created_by: "up",
        expires_at: None,
    };
    store.insert_token(new, now).await?;
    Ok(token.expose().to_owned())
}
