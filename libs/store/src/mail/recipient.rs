//! The status of recipients, for the reply to RCPT. `accept_mail` decides again when the mail is stored.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use tempmail_model::address::{RecipientAddress, Reservation};

use super::reserved::reserved_code;
use crate::error::StoreError;
use crate::pool::Store;

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
        /// Whether the tenant that would own the mail is suspended.
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
        /// Bytes left of its quota, where requested.
        quota_left: Option<i64>,
    },
}

/// A row of the answer: system, shared inboxes, suspended, mailbox (true: live, false: held), quota left.
type Row = (Option<bool>, Option<bool>, bool, Option<bool>, Option<i64>);

/// A connection of its own for checks of recipients, opened at first use.
#[derive(Debug)]
pub struct RecipientReader {
    store: Store,
    connection: Option<PoolConnection<Postgres>>,
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
            Err(error) if kept && (error.is_unavailable() || error.is_plan_outdated()) => {
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
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let mut connection = self.store.pool().acquire().await?;
                connection.close_on_drop();
                connection
            }
        };
        let statuses = find_recipients(&mut connection, queries, now).await?;
        self.connection = Some(connection);
        Ok(statuses)
    }
}

async fn find_recipients(
    connection: &mut PoolConnection<Postgres>,
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
        SELECT o.is_system, o.shared_inboxes, o.suspended IS TRUE,
               CASE WHEN o.mailbox IS NOT NULL THEN NOT o.on_hold END,
               CASE WHEN q.with_quota_left AND NOT o.on_hold THEN o.quota - mailbox_used(o.mailbox, $5) END
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
    .fetch_all(&mut **connection)
    .await?;
    Ok(rows.into_iter().map(status).collect())
}

fn status((system, shared_inboxes, suspended, mailbox, quota_left): Row) -> RecipientStatus {
    let Some(shared_inboxes) = shared_inboxes else {
        return RecipientStatus::NotServed;
    };
    let system = system == Some(true);
    let mailbox = match mailbox {
        None => RecipientMailbox::Absent,
        Some(false) => RecipientMailbox::Held,
        Some(true) => RecipientMailbox::Present { quota_left },
    };
    RecipientStatus::Served { system, shared_inboxes: shared_inboxes || !system, suspended, mailbox }
}
