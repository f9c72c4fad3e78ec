//! What a tenant's tokens read by address or by id (`/v1`). Who may read is decided in the
//! statement that reads, so that one snapshot answers both.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row as _};
use tempmail_model::address::{RecipientAddress, Reservation, ReservedLocalParts};
use tempmail_model::message::OwnerKind;
use uuid::Uuid;

use crate::delivery::reserved_code;
use crate::message::{MessageRow, StoredMessage, mails_of_moment, message_by_id, raw_start};
use crate::{Store, StoreError};

/// An address as a tenant asks for it.
#[derive(Debug, Clone, Copy)]
pub struct InboxQuery<'a> {
    /// Whose token asks.
    pub tenant: Uuid,
    /// The exact address.
    pub address: &'a RecipientAddress,
    /// What its local part is on a system domain.
    pub reserved: Reservation,
}

/// Whose mail an address that may be read has just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxAccess {
    /// The row of its domain.
    pub domain: Uuid,
    /// The mailbox, where there is one.
    pub mailbox: Option<Uuid>,
    /// Kind of owner.
    pub owner_kind: OwnerKind,
    /// Owner.
    pub owner: Uuid,
    /// What arrivals are told by: the mailbox, or the key of the exact address.
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

/// What a scan met.
#[derive(Debug, Clone)]
pub struct InboxScan {
    /// Whose mail it is.
    pub access: InboxAccess,
    /// Where the stream stood: every message up to it was seen by the scan, unless the scan
    /// ended at its limit.
    pub position: i64,
    /// In the order of the range.
    pub rows: Vec<MessageRow>,
}

/// The one row of an address that the tenant may read; none where it may not. Binds $1
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

/// A scan of `access a` by one of the functions that read an inbox in one class; they take the
/// range's bound as $8 and the limit as $9.
macro_rules! scan_inbox {
    ($read:literal, $order:literal) => {
        concat!(
            "/* scan_inbox */ WITH ", access!(), "
            SELECT a.domain AS in_domain, a.mailbox AS in_mailbox, a.owner_kind AS of_kind, a.owner AS of_owner,
                   a.inbox AS of_inbox, s.seq AS position, m.*
            FROM access a JOIN stream s ON s.one
            LEFT JOIN LATERAL (
                SELECT m.* FROM unnest(a.classes) AS c (class)
                CROSS JOIN LATERAL ", $read, "(c.class, $7, a.inbox, a.owner, a.address, $8, $9) m
                ORDER BY m.seq ", $order, " LIMIT $9
            ) m ON true
            ORDER BY m.seq ", $order
        )
    };
}

const SCAN_AFTER: &str = scan_inbox!("inbox_after", "ASC");
const SCAN_BEFORE: &str = scan_inbox!("inbox_before", "DESC");

/// What an address has that is not a mailbox's is found by its own key, so only a mailbox is cleared by
/// address.
const CLEAR_INBOX: &str = concat!(
    "/* clear_inbox */ WITH ",
    access!(),
    ", cleared AS MATERIALIZED (
        SELECT clear_inbox(a.inbox, a.owner, CASE a.owner_kind WHEN 1 THEN a.address ELSE '' END, $7)
        FROM access a
        WHERE EXISTS (SELECT FROM unnest(a.classes) AS c (class)
                      CROSS JOIN LATERAL inbox_after(c.class, $7, a.inbox, a.owner, a.address, 0, 1))
    )
    SELECT EXISTS (SELECT FROM access), (SELECT count(*) FROM cleared)"
);

// Raw data is looked for after the rights, so that what others have takes no longer to refuse.
static FIND_READABLE_MESSAGE: LazyLock<String> = LazyLock::new(|| {
    let (message, raw) = (message_by_id(), raw_start("$4", "$5", "$6"));
    format!(
        "/* find_readable_message */
        SELECT m.*, r.* FROM (
            SELECT m.* FROM {message}
            CROSS JOIN LATERAL address_owner(
                split_part(m.address, '@', 2), split_part(split_part(m.address, '@', 1), '+', 1), 0::smallint, $3) o
            WHERE m.id >= time_id($3 - make_interval(hours => m.class))
              AND CASE m.owner_kind
                      WHEN 0 THEN o.owner_kind = 0 AND o.shared_inboxes
                      WHEN 3 THEN o.is_system AND m.owner = $2
                      ELSE o.owner = m.owner AND o.tenant = $2 AND NOT o.on_hold END
            OFFSET 0
        ) m LEFT JOIN LATERAL {raw} ON true"
    )
});

const LIST_REMAINING: &str = "/* filter_visible_messages */
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
    /// Scans up to `limit` unexpired messages of an address; `None` where the tenant may not
    /// read it or nobody is served there.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn scan_inbox(
        &self,
        question: InboxQuery<'_>,
        range: ScanRange,
        limit: i64,
        now: Timestamp,
    ) -> Result<Option<InboxScan>, StoreError> {
        let (statement, bound) = match range {
            ScanRange::After(seq) => (SCAN_AFTER, seq),
            ScanRange::Before(seq) => (SCAN_BEFORE, seq),
        };
        let rows = ask(statement, &question, now).bind(bound).bind(limit).fetch_all(self.pool()).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let mut scan =
            InboxScan { access: access(first)?, position: first.try_get("position")?, rows: Vec::new() };
        if first.try_get::<Option<Uuid>, _>("id")?.is_some() {
            scan.rows = rows.iter().map(MessageRow::from_row).collect::<Result<_, _>>()?;
        }
        Ok(Some(scan))
    }

    /// Deletes every message that an address shows just now: invisible from here on, carried
    /// out by the worker. `false` where the tenant may not read the address.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn clear_inbox(&self, question: InboxQuery<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let row = ask(CLEAR_INBOX, &question, now).fetch_one(self.pool()).await?;
        Ok(row.try_get(0)?)
    }

    /// An unexpired message that the tenant's tokens may read: of its mailboxes, of its
    /// custom domains while they serve, of `platform`, or of a shared inbox while its address
    /// is one. With up to `raw_len` octets of its raw data.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_readable_message(
        &self,
        tenant: Uuid,
        id: Uuid,
        reserved: &ReservedLocalParts,
        now: Timestamp,
        raw_len: i32,
    ) -> Result<Option<StoredMessage>, StoreError> {
        let [lowest_mail, highest_mail] = mails_of_moment(id);
        let row = sqlx::query(FIND_READABLE_MESSAGE.as_str())
            .bind(id)
            .bind(tenant)
            .bind(now.to_sqlx())
            .bind(lowest_mail)
            .bind(highest_mail)
            .bind(raw_len)
            .fetch_optional(self.pool())
            .await?;
        let message = row.as_ref().map(StoredMessage::from_row).transpose()?;
        Ok(message.filter(|StoredMessage { row, .. }| {
            let base = row.address.split(['+', '@']).next().unwrap_or_default();
            row.owner_kind != OwnerKind::Shared || reserved.reservation_of(base) == Reservation::None
        }))
    }

    /// Which of these messages are neither deleted nor expired by now, and of a mailbox or domain
    /// that serves, in no order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn filter_visible_messages(
        &self,
        messages: &[MessageRow],
        now: Timestamp,
    ) -> Result<Vec<Uuid>, StoreError> {
        Ok(sqlx::query_scalar(LIST_REMAINING)
            .bind(messages.iter().map(|message| message.class.hours()).collect::<Vec<_>>())
            .bind(messages.iter().map(|message| message.id).collect::<Vec<_>>())
            .bind(now.to_sqlx())
            .fetch_all(self.pool())
            .await?)
    }
}

/// A statement over [`access!`] with its seven arguments.
fn ask<'q>(
    statement: &'static str,
    question: &InboxQuery<'q>,
    now: Timestamp,
) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(statement)
        .bind(question.address.domain())
        .bind(question.address.base_local_part())
        .bind(reserved_code(question.address, question.reserved))
        .bind(question.tenant)
        .bind(question.address.inbox_key())
        .bind(question.address.as_str())
        .bind(now.to_sqlx())
}

fn access(row: &PgRow) -> Result<InboxAccess, StoreError> {
    let domain = row.try_get("in_domain")?;
    let owner_kind = OwnerKind::from_code(row.try_get("of_kind")?).ok_or(StoreError::Inconsistent {
        table: "domain",
        column: "owner_kind",
        id: domain,
    })?;
    Ok(InboxAccess {
        domain,
        mailbox: row.try_get("in_mailbox")?,
        owner_kind,
        owner: row.try_get("of_owner")?,
        inbox: row.try_get("of_inbox")?,
    })
}
