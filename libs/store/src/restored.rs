//! What follows a restore: credentials that ended since the copy work again, until they are made new.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::tenants::token::ListedToken;

/// Mailboxes that [`Store::renew_password_epochs`] changes in one statement.
const EPOCH_BATCH: i64 = 1_000;

/// Epochs only grow, and by one at a time: in seconds of the time, none was used before.
const RENEW_PASSWORD_EPOCHS: &str = "/* renew_password_epochs */
    WITH batch AS (SELECT id FROM mailbox WHERE id > $1 ORDER BY id LIMIT $3),
    renewed AS (
        UPDATE mailbox b
        SET password_epoch = greatest(b.password_epoch + 1, extract(epoch FROM $2::timestamptz)::bigint)
        FROM batch WHERE b.id = batch.id
    )
    SELECT max(id::text)::uuid AS last, count(*) AS mailboxes FROM batch";

const LIST_ACCEPTED_TOKENS: &str = "/* list_accepted_tokens */
    SELECT t.name AS tenant, k.id, k.name, k.kind, k.hint, k.created_at, k.last_used_at, k.expires_at, k.revoked_at,
           k.surfaces
    FROM api_token k JOIN tenant t ON t.id = k.tenant
    WHERE k.active AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $1)
    ORDER BY t.name, k.created_at";

/// A token that is accepted.
#[derive(Debug, Clone)]
pub struct AcceptedToken {
    /// The name of its tenant.
    pub tenant: String,
    /// The token.
    pub token: ListedToken,
}

impl AcceptedToken {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self { tenant: row.try_get("tenant")?, token: ListedToken::from_row(row)? })
    }
}

impl Store {
    /// Begins a generation of the stream, and ends every Pro session that began before `now` and every minted token.
    /// Returns the position of the stream. Needs the login of the schema's owner.
    pub async fn database_restored(&self, now: Timestamp) -> Result<i64, StoreError> {
        let statement =
            sqlx::query("/* database_restored */ SELECT database_restored($1)").bind(now.to_sqlx());
        self.fetch_value(statement).await
    }

    /// Gives every mailbox a password epoch that it never had, so that every JWT ends; returns how many there are. Some
    /// at a time, so that mail does not wait; to be repeated where it fails.
    pub async fn renew_password_epochs(&self, now: Timestamp) -> Result<u64, StoreError> {
        let (mut after, mut renewed) = (Uuid::nil(), 0);
        loop {
            let statement =
                sqlx::query(RENEW_PASSWORD_EPOCHS).bind(after).bind(now.to_sqlx()).bind(EPOCH_BATCH);
            let batch = self
                .fetch_one(statement, |row| {
                    Ok((row.try_get::<Option<Uuid>, _>("last")?, row.try_get::<i64, _>("mailboxes")?))
                })
                .await?;
            let (Some(last), mailboxes) = batch else { return Ok(renewed) };
            (after, renewed) = (last, renewed + mailboxes.unsigned_abs());
        }
    }

    /// Every token that is accepted at `now`.
    pub async fn list_accepted_tokens(&self, now: Timestamp) -> Result<Vec<AcceptedToken>, StoreError> {
        self.fetch_all(sqlx::query(LIST_ACCEPTED_TOKENS).bind(now.to_sqlx()), AcceptedToken::from_row).await
    }
}
