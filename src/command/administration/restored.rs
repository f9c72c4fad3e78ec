//! `tempmail database`

use clap::Subcommand;
use serde_json::{Value, json};
use tempmail_model::timestamp::timestamp;
use tempmail_store::{AcceptedToken, SchemaDefinition};

use super::{AdminArgs, explain, explain_owner};
use crate::command::output;

/// Subcommands of `database`.
#[derive(Debug, Subcommand)]
pub(crate) enum DatabaseCommand {
    /// Make a restored database safe to serve: clients meet all mail, JWTs, sessions and minted tokens end, and tokens are listed
    ///
    /// To be run after each restore, before the roles start, with the login of `migrate`. Clients that wait or follow
    /// the mail go on where the copy ends, and meet some of it twice. Every mailbox JWT, Pro session and minted token ends:
    /// some had ended since the copy. Tokens that were revoked since the copy work again, and are among those that are listed.
    Restored,
}

/// Runs the command and prints the result.
pub(crate) async fn run(args: AdminArgs<DatabaseCommand>, schema: &SchemaDefinition) -> anyhow::Result<()> {
    let (database, json) = (args.database.connect(schema).await?, args.json);
    let DatabaseCommand::Restored = args.command;
    let (store, now) = (&database.store, database.now);
    let position = store.database_restored(now).await.map_err(explain_owner)?;
    let mailboxes = store.renew_password_epochs(now).await.map_err(explain_owner)?;
    let tokens = store.list_accepted_tokens(now).await.map_err(explain)?;
    if json {
        return output::json(&json!({
            "position": position,
            "mailboxes": mailboxes,
            "tokens": tokens.iter().map(record).collect::<Vec<_>>(),
        }));
    }
    output::line(&format!(
        "clients go on at position {position}; the JWTs of {mailboxes} mailboxes, all Pro sessions and all minted tokens ended"
    ))?;
    output::line("these tokens work, also where they were revoked since the copy: revoke those again")?;
    let rows: Vec<_> = tokens.iter().map(row).collect();
    output::table(["TENANT", "ID", "KIND", "HINT", "NAME", "CREATED", "LAST USED"], &rows)
}

fn row(AcceptedToken { tenant, token }: &AcceptedToken) -> [String; 7] {
    [
        tenant.clone(),
        token.id.to_string(),
        token.kind.clone(),
        token.hint.clone(),
        token.name.clone(),
        timestamp(token.created_at),
        token.last_used_at.map_or_else(|| "-".to_owned(), timestamp),
    ]
}

fn record(AcceptedToken { tenant, token }: &AcceptedToken) -> Value {
    json!({
        "tenant": tenant,
        "id": token.id,
        "kind": token.kind,
        "hint": token.hint,
        "name": token.name,
        "created_at": timestamp(token.created_at),
        "last_used_at": token.last_used_at.map(timestamp),
    })
}
