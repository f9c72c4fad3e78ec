//! Scans of all mail of an owner, in the order of the stream: of a tenant (`/v1/me`, `/v1/domain`), and of a mailbox
//! (the WebSocket). The statement that reads also decides whether the owner may read.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use uuid::Uuid;

use super::inbox::{ScanRange, ScanRequest, expiry_time};
use super::message::{MessageRow, message_columns};
use crate::error::StoreError;
use crate::pool::Store;

/// SQL for a scan of a tenant's mail, class by class. Binds $1 tenant,
/// $2 a domain that it must have, or null, $3 now, $4 the range's bound, $5 the limit, $6 since when the messages were
/// accepted.
macro_rules! scan_tenant {
    ($newest_first:literal, $order:literal) => {
        concat!(
            "/* scan_tenant */ WITH access AS MATERIALIZED (
                SELECT t.id, t.classes, d.id AS domain
                FROM tenant t LEFT JOIN domain d ON d.name = $2::text AND d.serves AND d.tenant = t.id
                WHERE t.id = $1 AND ($2 IS NULL OR d.id IS NOT NULL)
            )
            SELECT s.generation, s.seq AS position, a.domain AS access_domain, ",
            message_columns!(),
            "
            FROM access a JOIN stream s ON s.singleton
            LEFT JOIN LATERAL (
                SELECT m.* FROM unnest(a.classes) AS c (class)
                CROSS JOIN LATERAL tenant_messages(c.class, ",
            expiry_time!("$3", "$6"),
            ", a.id, ",
            $newest_first,
            ", $4, $5) m
                ORDER BY m.seq ",
            $order,
            " LIMIT $5
            ) m ON true
            ORDER BY m.seq ",
            $order
        )
    };
}

const SCAN_TENANT_AFTER: &str = scan_tenant!("false", "ASC");
const SCAN_TENANT_BEFORE: &str = scan_tenant!("true", "DESC");

const SCAN_MAILBOX: &str = concat!(
    "/* scan_mailbox */ WITH access AS MATERIALIZED (
        SELECT b.id, b.password_epoch, coalesce(t.suspended, false) AS suspended,
               CASE WHEN t.id IS NULL THEN ARRAY(SELECT class FROM free_class) ELSE t.classes END AS classes
        FROM mailbox b
        JOIN domain d ON d.id = b.domain AND d.serves
        LEFT JOIN tenant t ON t.id = b.tenant
        WHERE b.id = $1 AND b.removed_at IS NULL
    )
    SELECT s.generation, s.seq AS position, a.password_epoch, a.suspended, ",
    message_columns!(),
    "
    FROM access a JOIN stream s ON s.singleton
    LEFT JOIN LATERAL (
        SELECT m.* FROM unnest(a.classes) AS c (class)
        CROSS JOIN LATERAL inbox_messages(c.class, $2, a.id, a.id, '', false, $3, $4) m
        ORDER BY m.seq LIMIT $4
    ) m ON true
    ORDER BY m.seq"
);

/// What a scan of a tenant's mail met.
#[derive(Debug, Clone)]
pub struct TenantScan {
    /// The row of the domain that was asked for.
    pub domain: Option<Uuid>,
    /// The generation of the stream that the positions belong to.
    pub generation: Uuid,
    /// Where the stream stood: every message up to it was seen, unless the scan ended at its limit.
    pub position: i64,
    /// In the order of the range.
    pub rows: Vec<MessageRow>,
}

/// What a scan of a mailbox met.
#[derive(Debug, Clone)]
pub struct MailboxScan {
    /// What its valid JWTs carry.
    pub password_epoch: i64,
    /// Whether its tenant is suspended.
    pub suspended: bool,
    /// The generation of the stream that the positions belong to.
    pub generation: Uuid,
    /// Where the stream stood: every message up to it was seen, unless the scan ended at its limit.
    pub position: i64,
    /// Oldest first.
    pub rows: Vec<MessageRow>,
}

impl Store {
    /// Scans unexpired messages that a tenant owns: of its mailboxes, and of every
    /// address under its custom domains while they serve. `None` where `domain` is given and is
    /// not a verified domain of the tenant's; it does not narrow the scan.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn scan_tenant(
        &self,
        tenant: Uuid,
        domain: Option<&str>,
        scan: ScanRequest,
        now: Timestamp,
    ) -> Result<Option<TenantScan>, StoreError> {
        let (statement, bound) = match scan.range {
            ScanRange::After(seq) => (SCAN_TENANT_AFTER, seq),
            ScanRange::Before(seq) => (SCAN_TENANT_BEFORE, seq),
        };
        let statement = sqlx::query(statement)
            .bind(tenant)
            .bind(domain)
            .bind(now.to_sqlx())
            .bind(bound)
            .bind(scan.limit)
            .bind(scan.accepted_since());
        let rows = self.fetch_rows(statement).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        Ok(Some(TenantScan {
            domain: first.try_get("access_domain")?,
            generation: first.try_get("generation")?,
            position: first.try_get("position")?,
            rows: MessageRow::from_left_join(&rows)?,
        }))
    }

    /// Scans up to `limit` unexpired messages of a mailbox after a position; `None` where it is
    /// removed or its domain does not serve.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn scan_mailbox(
        &self,
        mailbox: Uuid,
        after: i64,
        limit: i64,
        now: Timestamp,
    ) -> Result<Option<MailboxScan>, StoreError> {
        let statement = sqlx::query(SCAN_MAILBOX).bind(mailbox).bind(now.to_sqlx()).bind(after).bind(limit);
        let rows = self.fetch_rows(statement).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        Ok(Some(MailboxScan {
            password_epoch: first.try_get("password_epoch")?,
            suspended: first.try_get("suspended")?,
            generation: first.try_get("generation")?,
            position: first.try_get("position")?,
            rows: MessageRow::from_left_join(&rows)?,
        }))
    }
}
