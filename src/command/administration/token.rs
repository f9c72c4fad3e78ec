//! `tempmail token`

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tempmail_model::id::new_id;
use tempmail_model::timestamp::timestamp;
use tempmail_model::token::{PlainToken, TOKEN_DAYS_MAX, TokenKind, is_token_name};
use tempmail_store::{ChangeError, CreateOutcome, ListedToken, NewToken, SchemaDefinition, Tenant};

use super::tenant::find;
use super::{AdminArgs, Database, explain};
use crate::command::output;

/// `created_by` of tokens that this command creates; also their default name.
const CREATED_BY: &str = "cli";

/// Subcommands of `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it can't be shown again
    Create {
        /// Name of the tenant
        tenant: String,
        /// `live` for /v1, `pro` for /pro/api and POST /api/accounts
        #[arg(long)]
        kind: TokenKindArg,
        /// Name of the token
        #[arg(long, default_value = CREATED_BY, value_parser = token_name)]
        name: String,
        /// Days until the token expires, up to 3650 [default: never]
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(1..=TOKEN_DAYS_MAX),
              allow_negative_numbers = true)]
        expires_in_days: Option<i64>,
    },
    /// Revoke a token
    Revoke {
        /// Name of the tenant
        tenant: String,
        /// Id of the token, or its hint: the last four digits
        token: String,
    },
    /// List the tokens of a tenant; revoked and expired ones are listed for 7 days
    List {
        /// Name of the tenant
        tenant: String,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TokenKindArg {
    Live,
    Pro,
}

impl From<TokenKindArg> for TokenKind {
    fn from(kind: TokenKindArg) -> Self {
        match kind {
            TokenKindArg::Live => Self::Live,
            TokenKindArg::Pro => Self::Pro,
        }
    }
}

/// Runs the command and prints the result.
pub(crate) async fn run(args: AdminArgs<TokenCommand>, schema: &SchemaDefinition) -> anyhow::Result<()> {
    let (database, json) = (args.database.connect(schema).await?, args.json);
    match args.command {
        TokenCommand::Create { tenant, kind, name, expires_in_days } => {
            let tenant = find(&database, &tenant).await?;
            create(&database, &tenant, kind.into(), name, expires_in_days, json).await
        }
        TokenCommand::Revoke { tenant, token } => {
            let tenant = find(&database, &tenant).await?;
            revoke(&database, &tenant, &token, json).await
        }
        TokenCommand::List { tenant } => {
            let tenant = find(&database, &tenant).await?;
            print(&tokens(&database, &tenant).await?, json)
        }
    }
}

/// Creates a token. Only the token goes to standard output, so that a script can capture it.
async fn create(
    database: &Database,
    tenant: &Tenant,
    kind: TokenKind,
    name: String,
    days: Option<i64>,
    json: bool,
) -> anyhow::Result<()> {
    let token = PlainToken::generate(kind).context("the operating system provides no randomness")?;
    let (id, now) = (new_id(database.now), database.now);
    let expires_at = days.map(|days| now + SignedDuration::from_hours(24 * days));
    let new = NewToken {
        tenant: tenant.id,
        kind,
        name: &name,
        token: &token,
        surfaces: &[],
        created_by: CREATED_BY,
        expires_at,
    };
    match database.store.create_token(id, new, now).await.map_err(explain)? {
        CreateOutcome::Created => {}
        CreateOutcome::LimitReached => anyhow::bail!(
            "the tenant {} has reached its limit of {} tokens: revoke one, or raise the limit with `tempmail tenant set --tokens`",
            tenant.name,
            tenant.tokens.limit
        ),
        CreateOutcome::TenantDisabled => {
            anyhow::bail!("the tenant {} is suspended: resume it first", tenant.name)
        }
    }
    if !json {
        return output::line(token.expose());
    }
    let mut created = record(&ListedToken {
        id,
        kind: kind.as_str().to_owned(),
        hint: token.hint().to_owned(),
        name,
        created_at: now,
        last_used_at: None,
        expires_at,
        revoked_at: None,
        surfaces: Vec::new(),
    });
    created["token"] = json!(token.expose());
    output::json(&created)
}

async fn revoke(database: &Database, tenant: &Tenant, id_or_hint: &str, json: bool) -> anyhow::Result<()> {
    let name = &tenant.name;
    let tokens = tokens(database, tenant).await?;
    let is_active = |token: &&ListedToken| token.revoked_at.is_none();
    let found: Vec<&ListedToken> = tokens
        .iter()
        .filter(is_active)
        .filter(|token| {
            token.hint == id_or_hint || id_or_hint.parse().is_ok_and(|id: uuid::Uuid| id == token.id)
        })
        .collect();
    let token = match found[..] {
        [token] => token,
        [] => anyhow::bail!("the tenant {name} has no token {id_or_hint}"),
        _ => anyhow::bail!(
            "the tenant {name} has {} tokens ending in {id_or_hint}: revoke it by its id",
            found.len()
        ),
    };
    match database.store.revoke_token(tenant.id, token.id, None, database.now).await.map_err(explain)? {
        Ok(()) => {}
        Err(ChangeError::NotFound) => anyhow::bail!("the tenant {name} has no token {id_or_hint}"),
        Err(ChangeError::ManagedByKubernetes) => {
            anyhow::bail!("the token {id_or_hint} is managed by Kubernetes: delete its ApiToken")
        }
    }
    if json {
        let revoked_at = Some(database.now);
        return output::json(&record(&ListedToken { revoked_at, ..token.clone() }));
    }
    output::line(&format!("revoked token {} ({}, ends in {})", token.id, token.name, token.hint))
}

/// All tokens of a tenant, newest first.
async fn tokens(database: &Database, tenant: &Tenant) -> anyhow::Result<Vec<ListedToken>> {
    let mut tokens = Vec::new();
    for page in 1.. {
        let more = database.store.list_tokens(tenant.id, None, page, database.now).await.map_err(explain)?;
        if more.is_empty() {
            break;
        }
        tokens.extend(more);
    }
    Ok(tokens)
}

fn print(tokens: &[ListedToken], json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&json!({"tokens": tokens.iter().map(record).collect::<Vec<_>>()}));
    }
    let time = |at: Option<jiff::Timestamp>| at.map_or_else(|| "-".to_owned(), timestamp);
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| {
            [
                token.id.to_string(),
                token.kind.clone(),
                token.hint.clone(),
                token.name.clone(),
                timestamp(token.created_at),
                time(token.last_used_at),
                time(token.expires_at),
                time(token.revoked_at),
            ]
        })
        .collect();
    let header = ["ID", "KIND", "HINT", "NAME", "CREATED", "LAST USED", "EXPIRES", "REVOKED"];
    output::table(header, &rows)
}

/// The fields of a token over HTTP.
fn record(token: &ListedToken) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "kind": token.kind,
        "hint": token.hint,
        "created_at": timestamp(token.created_at),
        "last_used_at": token.last_used_at.map(timestamp),
        "expires_at": token.expires_at.map(timestamp),
        "revoked_at": token.revoked_at.map(timestamp),
        "surfaces": token.surfaces,
    })
}

/// A token name, by the same rule as over HTTP.
fn token_name(text: &str) -> Result<String, &'static str> {
    if is_token_name(text) {
        Ok(text.to_owned())
    } else {
        Err("a name has 1 to 100 characters and no control characters")
    }
}
