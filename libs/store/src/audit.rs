//! The audit trail: who made, changed or deleted what. Triggers write it with each change (`sql/audit.sql`).

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::{id_time, lowest_id};
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;

/// An entry of the audit trail. It has ids only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id, with its time.
    pub id: Uuid,
    /// An [`Actor`](crate::Actor), the object that an operator acted for, or the process that acted by itself.
    pub actor: String,
    /// The login of the database.
    pub login: String,
    /// `created`, `changed`, `rotated`, `revoked`, `suspended`, `resumed`, `deleted`, or the new status of a domain.
    pub action: String,
    /// `tenant`, `domain`, `mailbox`, `token`, `session`, `webhook` or `setting`.
    pub kind: String,
    /// Its id; the name of a setting.
    pub subject: String,
    /// The tenant that it belongs to.
    pub tenant: Option<Uuid>,
}

/// SQL for the columns of an entry `a` that [`AuditEntry`] reads.
macro_rules! entry_columns {
    () => {
        "a.id, a.actor, a.login, a.action, a.kind, a.subject, a.tenant"
    };
}

impl AuditEntry {
    /// When it was recorded.
    pub fn at(&self) -> Timestamp {
        id_time(self.id).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            actor: row.try_get("actor")?,
            login: row.try_get("login")?,
            action: row.try_get("action")?,
            kind: row.try_get("kind")?,
            subject: row.try_get("subject")?,
            tenant: row.try_get("tenant")?,
        })
    }
}

impl Store {
    /// Records that a Pro session of a token began.
    pub async fn record_session(&self, token: Uuid, tenant: Uuid) -> Result<(), StoreError> {
        let statement = "/* record_session */ SELECT record_audit('created', 'session', $1::text, $2)";
        self.execute(sqlx::query(statement).bind(token).bind(tenant)).await
    }

    /// The last `limit` entries since a time, of all tenants or of one; oldest first.
    pub async fn list_audit(
        &self,
        tenant: Option<Uuid>,
        since: Timestamp,
        limit: i64,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let statement = sqlx::query(concat!(
            "/* list_audit */ SELECT ",
            entry_columns!(),
            " FROM audit a
            WHERE a.id >= $1 AND ($2::uuid IS NULL OR a.tenant = $2) ORDER BY a.id DESC LIMIT $3",
        ));
        let statement = statement.bind(lowest_id(since)).bind(tenant).bind(limit);
        let mut entries = self.fetch_all(statement, AuditEntry::from_row).await?;
        entries.reverse();
        Ok(entries)
    }

    /// Up to `limit` entries that are not in the log yet, oldest first.
    pub async fn list_unlogged_audit(&self, limit: i64) -> Result<Vec<AuditEntry>, StoreError> {
        let statement = sqlx::query(concat!(
            "/* list_unlogged_audit */ SELECT ",
            entry_columns!(),
            " FROM (SELECT u.id FROM audit_unlogged u ORDER BY u.id LIMIT $1) u JOIN audit a ON a.id = u.id
            ORDER BY a.id",
        ));
        self.fetch_all(statement.bind(limit), AuditEntry::from_row).await
    }

    /// Marks entries as logged.
    ///
    /// # Errors
    /// [`StoreError`]: they may be logged again.
    pub async fn record_audit_logged(&self, ids: &[Uuid]) -> Result<(), StoreError> {
        let statement = "/* record_audit_logged */ DELETE FROM audit_unlogged WHERE id = ANY ($1)";
        self.execute(sqlx::query(statement).bind(ids)).await
    }

    /// Drops the partitions of months that ended more than 400 days ago; none where another transaction uses one.
    pub async fn drop_audit_partitions(&self) -> Result<(), StoreError> {
        let statement = sqlx::query("/* drop_audit_partitions */ SELECT drop_audit_partitions()");
        self.execute_unless_locked(statement).await.map(drop)
    }
}
