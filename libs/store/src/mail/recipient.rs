//! The status of recipients, for the reply to RCPT. `accept_mail` decides again when the mail is stored.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::PgConnection;
use tempmail_model::address::{RecipientAddress, Reservation};
use uuid::Uuid;

use super::address::reserved_code;
use crate::error::StoreError;
use crate::pool::Store;
use crate::pooled_connection::{PooledConnection, answered};

/// A recipient to check.
#[derive(Debug, Clone, Copy)]
pub struct RecipientQuery<'a> {
    /// The recipient.
    pub address: &'a RecipientAddress,
    /// Whether to answer how much of its mailbox's quota is left: a size was declared.
    pub with_quota_left: bool,
    /// What its local part is on a system domain.
    pub reserved: Reservation,
}

/// The status of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientStatus {
    /// Its domain is not served.
    NotServed,
    /// Its domain is served.
    Served {
        /// Whether the domain is a system domain; else it is a custom domain.
        system: bool,
        /// Whether addresses without a mailbox receive mail (always under custom domains).
        shared_inboxes: bool,
        /// The tenant that would own the mail; `None`: a free mailbox or a shared inbox.
        tenant: Option<Uuid>,
        /// Whether that tenant is suspended.
        suspended: bool,
        /// The mailbox of the address.
        mailbox: RecipientMailbox,
    },
}

/// The mailbox of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientMailbox {
    /// It has none.
    Absent,
    /// It is removed, and its address is held.
    Held,
    /// It receives mail.
    Present {
        /// Its id.
        id: Uuid,
        /// Bytes left of its quota, where requested: by the stored sum, which may still count expired mail
        /// ([`Store::expire_usage`]), and so never too many.
        quota_left: Option<i64>,
    },
}

/// A row of the answer: system, shared inboxes, tenant, suspended, mailbox, whether its address is held, quota left.
type Row = (Option<bool>, Option<bool>, Option<Uuid>, bool, Option<Uuid>, Option<bool>, Option<i64>);

/// A connection of its own for checks of recipients, opened at first use.
#[derive(Debug)]
pub struct RecipientReader {
    store: Store,
    connection: Option<PooledConnection>,
}

impl RecipientReader {
    /// A reader that opens its connection from this pool.
    pub fn new(store: Store) -> Self {
        Self { store, connection: None }
    }

    /// The status of each recipient, in order, in one round trip.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find(
        &mut self,
        queries: &[RecipientQuery<'_>],
        now: Timestamp,
    ) -> Result<Vec<RecipientStatus>, StoreError> {
        let kept = self.connection.is_some();
        match self.try_find(queries, now).await {
            // The connection may have broken while it was idle, or its plans.
            Err(error)
                if kept && !error.is_silent() && (error.is_unavailable() || error.is_plan_outdated()) =>
            {
                self.try_find(queries, now).await
            }
            result => result,
        }
    }

    async fn try_find(
        &mut self,
        queries: &[RecipientQuery<'_>],
        now: Timestamp,
    ) -> Result<Vec<RecipientStatus>, StoreError> {
        // Kept only after an answer: after an error, or when the caller is cancelled, it may be broken.
        let kept = match self.connection.take() {
            Some(mut kept) => kept.is_alive().await.then_some(kept),
            None => None,
        };
        let mut connection = match kept {
            Some(kept) => kept,
            None => {
                let mut connection = self.store.acquire().await?;
                connection.close_on_drop();
                connection
            }
        };
        let deadline = connection.deadline();
        let statuses = answered(deadline, find_recipients(&mut connection, queries, now)).await?;
        self.connection = Some(connection);
        Ok(statuses)
    }
}

async fn find_recipients(
    connection: &mut PgConnection,
    queries: &[RecipientQuery<'_>],
    now: Timestamp,
) -> Result<Vec<RecipientStatus>, StoreError> {
    let domains: Vec<&str> = queries.iter().map(|query| query.address.domain()).collect();
    let bases: Vec<&str> = queries.iter().map(|query| query.address.base_local_part()).collect();
    let with_quota_left: Vec<bool> = queries.iter().map(|query| query.with_quota_left).collect();
    let reserved: Vec<i16> =
        queries.iter().map(|query| reserved_code(query.address, query.reserved)).collect();
    let rows: Vec<Row> = sqlx::query_as(
        "/* find_recipients */
        SELECT o.is_system, o.shared_inboxes, o.tenant, o.suspended IS TRUE, o.mailbox, o.on_hold,
               CASE WHEN q.with_quota_left AND NOT o.on_hold
                    THEN o.quota - (SELECT k.bytes FROM scope_used(o.mailbox, $5) k) END
        FROM unnest($1::text[], $2::text[], $3::boolean[], $4::smallint[])
             WITH ORDINALITY AS q (domain, local_part, with_quota_left, reserved, ord)
        LEFT JOIN LATERAL address_owner(q.domain, q.local_part, q.reserved, $5) o ON true
        ORDER BY q.ord",
    )
    .bind(&domains)
    .bind(&bases)
    .bind(&with_quota_left)
    .bind(&reserved)
    .bind(now.to_sqlx())
    .fetch_all(&mut *connection)
    .await?;
    Ok(rows.into_iter().map(status).collect())
}

fn status((system, shared_inboxes, tenant, suspended, mailbox, on_hold, quota_left): Row) -> RecipientStatus {
    let Some(shared_inboxes) = shared_inboxes else {
        return RecipientStatus::NotServed;
    };
    let system = system == Some(true);
    let mailbox = match mailbox {
        None => RecipientMailbox::Absent,
        Some(_) if on_hold == Some(true) => RecipientMailbox::Held,
        Some(id) => RecipientMailbox::Present { id, quota_left },
    };
    RecipientStatus::Served { system, shared_inboxes: shared_inboxes || !system, tenant, suspended, mailbox }
}
