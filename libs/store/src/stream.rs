//! The one stream: where it stands, which arrivals a reader of hints has missed, and which
//! waits on it have lost their right.

use std::sync::Arc;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use tempmail_model::address::RecipientAddress;
use tempmail_model::id::lowest_id;
use tempmail_model::message::Arrival;
use uuid::Uuid;

use crate::{InboxAccess, Store, StoreError};

const LIST_ENDED_WAITS: &str = "/* list_ended_waits */
    SELECT * FROM (
        SELECT w.ord, CASE
            WHEN k.id IS NULL OR k.revoked_at IS NOT NULL THEN 1
            WHEN k.expires_at <= $7 THEN 2
            WHEN t.suspended THEN 3
            WHEN d.id IS DISTINCT FROM w.in_domain OR b.id IS DISTINCT FROM w.in_mailbox
                 OR b.removed_at IS NOT NULL OR (w.of_kind = 0 AND NOT d.shared_inboxes) THEN 4
            END AS ended
        FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::smallint[])
             WITH ORDINALITY AS w (token, domain, local_part, in_domain, in_mailbox, of_kind, ord)
        LEFT JOIN api_token k ON k.id = w.token
        LEFT JOIN tenant t ON t.id = k.tenant
        LEFT JOIN domain d ON d.name = w.domain AND d.serves
        LEFT JOIN mailbox b ON b.domain = d.id AND b.local_part = w.local_part
                           AND (b.removed_at IS NULL OR b.held_until > $7)
    ) e WHERE e.ended IS NOT NULL";

/// The missed messages of one class, of the partitions that are young enough.
macro_rules! arrivals_of {
    ($class:literal) => {
        concat!(
            "SELECT seq, owner, inbox FROM message WHERE class = ",
            $class,
            " AND id >= $3 AND seq > $1 AND seq <= $2"
        )
    };
}

const LIST_ARRIVALS: &str = concat!(
    "/* list_arrivals */ ",
    arrivals_of!(1),
    " UNION ALL ",
    arrivals_of!(6),
    " UNION ALL ",
    arrivals_of!(24),
    " UNION ALL ",
    arrivals_of!(72),
    " UNION ALL ",
    arrivals_of!(168),
    " UNION ALL ",
    arrivals_of!(720)
);

/// What an open wait on an address rests on.
#[derive(Debug, Clone)]
pub struct OpenWait {
    /// The token that waits.
    pub token: Uuid,
    /// The address it waits on.
    pub address: Arc<RecipientAddress>,
    /// Whose mail that was when it was last read.
    pub access: InboxAccess,
}

/// Why a wait can't go on as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// The token is revoked or gone.
    TokenGone,
    /// The token's time has passed.
    TokenExpired,
    /// The token's tenant is suspended.
    TenantSuspended,
    /// The address's domain or mailbox is not the one it was: read again who may read.
    Moved,
}

impl Store {
    /// Which of these waits have lost what they rest on, by their place in `waits`; in no order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_ended_waits(
        &self,
        waits: &[OpenWait],
        now: Timestamp,
    ) -> Result<Vec<(usize, WaitEnd)>, StoreError> {
        let rows = sqlx::query(LIST_ENDED_WAITS)
            .bind(waits.iter().map(|wait| wait.token).collect::<Vec<_>>())
            .bind(waits.iter().map(|wait| wait.address.domain()).collect::<Vec<_>>())
            .bind(waits.iter().map(|wait| wait.address.base_local_part()).collect::<Vec<_>>())
            .bind(waits.iter().map(|wait| wait.access.domain).collect::<Vec<_>>())
            .bind(waits.iter().map(|wait| wait.access.mailbox).collect::<Vec<_>>())
            .bind(waits.iter().map(|wait| wait.access.owner_kind.code()).collect::<Vec<_>>())
            .bind(now.to_sqlx())
            .fetch_all(self.pool())
            .await?;
        rows.iter()
            .map(|row| {
                let place = usize::try_from(row.try_get::<i64, _>("ord")? - 1).unwrap_or(usize::MAX);
                let end = match row.try_get::<i32, _>("ended")? {
                    1 => WaitEnd::TokenGone,
                    2 => WaitEnd::TokenExpired,
                    3 => WaitEnd::TenantSuspended,
                    _ => WaitEnd::Moved,
                };
                Ok((place, end))
            })
            .collect()
    }

    /// The position of the newest committed message.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn stream_position(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("/* stream_position */ SELECT seq FROM stream WHERE one")
            .fetch_one(self.pool())
            .await?)
    }

    /// The messages of `after < seq <= up_to` that were accepted since `accepted_since`, in
    /// no order. The caller bounds the range.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_arrivals(
        &self,
        after: i64,
        up_to: i64,
        accepted_since: Timestamp,
    ) -> Result<Vec<Arrival>, StoreError> {
        let rows = sqlx::query(LIST_ARRIVALS)
            .bind(after)
            .bind(up_to)
            .bind(lowest_id(accepted_since))
            .fetch_all(self.pool())
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Arrival {
                    seq: row.try_get("seq")?,
                    owner: row.try_get("owner")?,
                    inbox: row.try_get("inbox")?,
                })
            })
            .collect()
    }
}
