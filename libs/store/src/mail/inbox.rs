//! What the tokens of a tenant read by address or by id (`/v1`). The statement that reads also decides whether the
//! tenant may read, on the same snapshot.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::address::{RecipientAddress, Reservation, ReservedLocalParts};
use tempmail_model::message::OwnerKind;
use uuid::Uuid;

use super::address::reserved_code;
use super::message::{MessageRow, message_by_id, message_columns};
use super::raw::{RAW_COLUMNS, StoredMessage, mails_of_moment, raw_start};
use crate::error::StoreError;
use crate::pool::{Statement, Store};
use crate::row::first_column;

/// An address that a tenant requests.
#[derive(Debug, Clone, Copy)]
pub struct InboxQuery<'a> {
    /// The tenant of the token.
    pub tenant: Uuid,
    /// The exact address.
    pub address: &'a RecipientAddress,
    /// What its local part is on a system domain.
    pub reserved: Reservation,
}

/// The mail that a readable address has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxAccess {
    /// Its domain.
    pub domain: Uuid,
    /// Its mailbox, if it has one.
    pub mailbox: Option<Uuid>,
    /// The kind of the owner of its mail.
    pub owner_kind: OwnerKind,
    /// The owner of its mail.
    pub owner: Uuid,
    /// What arrivals are matched by: the mailbox, or the key of the exact address.
    pub inbox: Uuid,
}

/// Which messages of an inbox to scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanRange {
    /// Those after a position, oldest first.
    After(i64),
    /// Those before a position, newest first; `i64::MAX` for all.
    Before(i64),
}

/// What a scan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanRequest {
    /// Its messages, and their order.
    pub range: ScanRange,
    /// Only messages that were accepted in this millisecond or later.
    pub accepted_since: Option<Timestamp>,
    /// Messages at most.
    pub limit: i64,
}

impl ScanRequest {
    /// Up to `limit` messages of `range`.
    pub fn new(range: ScanRange, limit: i64) -> Self {
        Self { range, accepted_since: None, limit }
    }

    /// The parameter `$since` of [`expiry_time!`].
    pub(super) fn accepted_since(&self) -> Option<jiff_sqlx::Timestamp> {
        // Postgres has no times as early as jiff.
        self.accepted_since.map(|at| at.max(Timestamp::UNIX_EPOCH).to_sqlx())
    }
}

/// SQL for the time that messages of a class `c.class` must not be expired at: now (`$now`), or later where only those
/// count that were accepted since `$since`. The partitions of older messages are not read.
macro_rules! expiry_time {
    ($now:literal, $since:literal) => {
        concat!("greatest(", $now, ", ", $since, "::timestamptz + make_interval(hours => c.class))")
    };
}
pub(super) use expiry_time;

/// The result of a scan.
#[derive(Debug, Clone)]
pub struct InboxScan {
    /// The mail that the address has.
    pub access: InboxAccess,
    /// The generation of the stream that the positions belong to.
    pub generation: Uuid,
    /// The position of the stream: the scan saw every message up to it, unless it ended at its limit.
    pub position: i64,
    /// In the order of the range.
    pub rows: Vec<MessageRow>,
}

/// SQL for the one row of an address that the tenant may read; none where it may not. Binds $1
/// domain, $2 base local part, $3 reserved, $4 tenant, $5 key, $6 address, $7 now.
macro_rules! access {
    () => {
        "access AS MATERIALIZED (
            SELECT o.domain, o.mailbox, o.owner_kind, o.owner, coalesce(o.mailbox, $5::uuid) AS inbox,
                   CASE WHEN o.owner_kind = 1 AND $6::text = $2 || '@' || $1 THEN '' ELSE $6 END AS address,
                   CASE o.owner_kind WHEN 0 THEN ARRAY(SELECT class FROM free_class) ELSE o.classes END AS classes
            FROM address_owner($1, $2, $3, $7) o
            WHERE NOT o.on_hold AND ($3 <> 3 OR NOT o.is_system)
              AND CASE o.owner_kind WHEN 0 THEN o.shared_inboxes AND $3 = 0 ELSE o.tenant = $4 END
        )"
    };
}
pub(crate) use access;

/// SQL for a scan of `access a`, class by class; $8 is the bound of the range, $9 the limit, and $10 since when the
/// messages were accepted.
macro_rules! scan_inbox {
    ($newest_first:literal, $order:literal) => {
        concat!(
            "/* scan_inbox */ WITH ", access!(), "
            SELECT a.domain AS access_domain, a.mailbox AS access_mailbox, a.owner_kind AS access_owner_kind,
                   a.owner AS access_owner, a.inbox AS access_inbox, s.generation, s.seq AS position, ", message_columns!(), "
            FROM access a JOIN stream s ON s.singleton
            LEFT JOIN LATERAL (
                SELECT m.* FROM unnest(a.classes) AS c (class)
                CROSS JOIN LATERAL inbox_messages(
                    c.class, ", expiry_time!("$7", "$10"), ", a.inbox, a.owner, a.address, ", $newest_first, ", $8, $9) m
                ORDER BY m.seq ", $order, " LIMIT $9
            ) m ON true
            ORDER BY m.seq ", $order
        )
    };
}

const SCAN_AFTER: &str = scan_inbox!("false", "ASC");
const SCAN_BEFORE: &str = scan_inbox!("true", "DESC");

/// An address without a mailbox has a key of its own, so only a mailbox is cleared by address.
const CLEAR_INBOX: &str = concat!(
    "/* clear_inbox */ WITH ",
    access!(),
    ", cleared AS MATERIALIZED (
        SELECT clear_inbox(a.inbox, a.owner, CASE a.owner_kind WHEN 1 THEN a.address ELSE '' END, $7)
        FROM access a
        WHERE EXISTS (SELECT FROM unnest(a.classes) AS c (class)
                      CROSS JOIN LATERAL inbox_messages(c.class, $7, a.inbox, a.owner, a.address, false, 0, 1))
    )
    SELECT EXISTS (SELECT FROM access), (SELECT count(*) FROM cleared)"
);

// Raw data is read after the access check, so that a refusal takes as long as an unknown id.
static FIND_READABLE_MESSAGE: LazyLock<String> = LazyLock::new(|| {
    let (columns, message, raw) = (message_columns!(), message_by_id(), raw_start("$4", "$5", "$6"));
    format!(
        "/* find_readable_message */
        SELECT {columns}, {RAW_COLUMNS} FROM (
            SELECT m.* FROM {message}
            CROSS JOIN LATERAL (SELECT split_part(m.address, '@', -1) AS domain) d
            CROSS JOIN LATERAL (
                SELECT split_part(left(m.address, -1 - length(d.domain)), '+', 1) AS base_local_part) l
            LEFT JOIN LATERAL address_owner(d.domain, l.base_local_part, 0::smallint, $3) o ON true
            WHERE m.id >= time_id($3 - make_interval(hours => m.class))
              AND CASE m.owner_kind
                      WHEN 0 THEN o.owner_kind = 0 AND o.shared_inboxes
                      WHEN 3 THEN o.is_system AND m.owner = $2
                      WHEN 4 THEN m.owner = $2
                      ELSE o.owner = m.owner AND o.tenant = $2 AND NOT o.on_hold END
              AND ($7::uuid IS NULL OR address_key(m.address) = $7
                   OR m.owner_kind = 1 AND $7 = address_key(l.base_local_part || '@' || d.domain))
            OFFSET 0
        ) m LEFT JOIN LATERAL {raw} ON true"
    )
});

const FILTER_VISIBLE_MESSAGES: &str = "/* filter_visible_messages */
    SELECT m.id FROM unnest($1::smallint[], $2::uuid[]) AS r (class, id)
    CROSS JOIN LATERAL (
        SELECT m.id FROM visible_message m
        WHERE m.class = r.class AND m.id = r.id
          AND m.id >= time_id($3 - make_interval(hours => r.class))
          AND CASE m.owner_kind
                  WHEN 1 THEN EXISTS (SELECT FROM mailbox b JOIN domain d ON d.id = b.domain
                                       WHERE b.id = m.owner AND b.removed_at IS NULL AND d.serves)
                  WHEN 2 THEN EXISTS (SELECT FROM domain d WHERE d.id = m.owner AND d.serves)
                  ELSE true END
        LIMIT 1
    ) m";

impl Store {
    /// Scans unexpired messages of an address; `None` where the tenant may not read it, or where it is not served.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn scan_inbox(
        &self,
        query: InboxQuery<'_>,
        scan: ScanRequest,
        now: Timestamp,
    ) -> Result<Option<InboxScan>, StoreError> {
        let (statement, bound) = match scan.range {
            ScanRange::After(seq) => (SCAN_AFTER, seq),
            ScanRange::Before(seq) => (SCAN_BEFORE, seq),
        };
        let statement = with_access(statement, &query, now);
        let statement = statement.bind(bound).bind(scan.limit).bind(scan.accepted_since());
        let rows = self.fetch_rows(statement).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        Ok(Some(InboxScan {
            access: InboxAccess::from_row(first)?,
            generation: first.try_get("generation")?,
            position: first.try_get("position")?,
            rows: MessageRow::from_left_join(&rows)?,
        }))
    }

    /// Deletes every message that an address has now: hidden at once, deleted by the worker. `false` where the
    /// tenant may not read the address.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn clear_inbox(&self, query: InboxQuery<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let may_read = self.fetch_value(with_access(CLEAR_INBOX, &query, now)).await?;
        if may_read {
            self.flush().await?;
        }
        Ok(may_read)
    }

    /// An unexpired message that the tokens of the tenant may read, with up to `raw_len` bytes of its raw data: of
    /// its mailboxes, of its custom domains while they serve, of `platform`, of its sink, or of a shared inbox while
    /// its address is one. `address`: only if a scan of the address with this key would find it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_readable_message(
        &self,
        tenant: Uuid,
        address: Option<Uuid>,
        id: Uuid,
        reserved: &ReservedLocalParts,
        now: Timestamp,
        raw_len: i32,
    ) -> Result<Option<StoredMessage>, StoreError> {
        let [lowest_mail, highest_mail] = mails_of_moment(id);
        let statement = sqlx::query(FIND_READABLE_MESSAGE.as_str())
            .bind(id)
            .bind(tenant)
            .bind(now.to_sqlx())
            .bind(lowest_mail)
            .bind(highest_mail)
            .bind(raw_len)
            .bind(address);
        let message = self.fetch_optional(statement, StoredMessage::from_row).await?;
        Ok(message.filter(|StoredMessage { row, .. }| {
            let base = row.address.split(['+', '@']).next().unwrap_or_default();
            row.owner_kind != OwnerKind::Shared || reserved.reservation_of(base) == Reservation::None
        }))
    }

    /// The ids of those of these messages that are neither deleted nor expired, and whose mailbox or domain serves;
    /// in no order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn filter_visible_messages(
        &self,
        messages: &[MessageRow],
        now: Timestamp,
    ) -> Result<Vec<Uuid>, StoreError> {
        self.fetch_all(
            sqlx::query(FILTER_VISIBLE_MESSAGES)
                .bind(messages.iter().map(|message| message.class.hours()).collect::<Vec<_>>())
                .bind(messages.iter().map(|message| message.id).collect::<Vec<_>>())
                .bind(now.to_sqlx()),
            first_column,
        )
        .await
    }
}

/// A statement with [`access!`] and its seven arguments.
pub(crate) fn with_access<'q>(
    statement: &'static str,
    query: &InboxQuery<'q>,
    now: Timestamp,
) -> Statement<'q> {
    sqlx::query(statement)
        .bind(query.address.domain())
        .bind(query.address.base_local_part())
        .bind(reserved_code(query.address, query.reserved))
        .bind(query.tenant)
        .bind(query.address.inbox_key())
        .bind(query.address.as_str())
        .bind(now.to_sqlx())
}

impl InboxAccess {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let domain = row.try_get("access_domain")?;
        let owner_kind = OwnerKind::from_code(row.try_get("access_owner_kind")?)
            .ok_or(StoreError::Inconsistent { table: "domain", column: "owner_kind", id: domain })?;
        Ok(Self {
            domain,
            mailbox: row.try_get("access_mailbox")?,
            owner_kind,
            owner: row.try_get("access_owner")?,
            inbox: row.try_get("access_inbox")?,
        })
    }
}
