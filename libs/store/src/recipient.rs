//! What RCPT has to know of an address. Only a look ahead, so that a client hears of each
//! recipient at once: who gets the mail is decided by `accept_mail` when it is stored.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use tempmail_model::address::{RecipientAddress, Reservation};

use crate::delivery::reserved_code;
use crate::{Store, StoreError};

/// A question about one recipient.
#[derive(Debug, Clone, Copy)]
pub struct RecipientQuery<'a> {
    /// The recipient.
    pub address: &'a RecipientAddress,
    /// Whether to answer how much of its mailbox's quota is left: a size was declared.
    pub with_quota_left: bool,
    /// What its local part is on a system domain.
    pub reserved: Reservation,
}

/// What is known of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientStatus {
    /// No domain row of that name serves.
    NotServed,
    /// The domain serves.
    Served {
        /// A system domain, else a custom one.
        system: bool,
        /// Addresses without a mailbox receive (always under custom domains).
        shared_inboxes: bool,
        /// The tenant that would own the mail is suspended.
        suspended: bool,
        /// The mailbox that the address belongs to.
        mailbox: RecipientMailbox,
    },
}

/// The mailbox of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientMailbox {
    /// There is none.
    Absent,
    /// It was removed, and its address is held.
    Held,
    /// It receives.
    Present {
        /// Octets left in its quota, where they were asked for.
        quota_left: Option<i64>,
    },
}

/// One row of the answer: system, shared inboxes, suspended, mailbox (live or held), quota_left.
type Row = (Option<bool>, Option<bool>, bool, Option<bool>, Option<i64>);

/// A connection of its own for questions at RCPT, opened when it is needed.
#[derive(Debug)]
pub struct RecipientReader {
    store: Store,
    connection: Option<PoolConnection<Postgres>>,
}

impl RecipientReader {
    /// Over this store.
    pub fn new(store: Store) -> Self {
        Self { store, connection: None }
    }

    /// Answers any number of questions in one round trip, in their order.
    ///
    /// # Errors
    /// Postgres is away.
    pub async fn find(
        &mut self,
        queries: &[RecipientQuery<'_>],
        now: Timestamp,
    ) -> Result<Vec<RecipientStatus>, StoreError> {
        let kept = self.connection.is_some();
        match self.try_find(queries, now).await {
            // A connection that was kept may have broken meanwhile: that is no answer.
            Err(error) if kept && error.is_unavailable() => self.try_find(queries, now).await,
            result => result,
        }
    }

    async fn try_find(
        &mut self,
        queries: &[RecipientQuery<'_>],
        now: Timestamp,
    ) -> Result<Vec<RecipientStatus>, StoreError> {
        // Kept only after an answer: one that failed, or whose caller lost patience, may be
        // broken.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let mut connection = self.store.pool.acquire().await?;
                connection.close_on_drop();
                connection
            }
        };
        let facts = find_recipients(&mut connection, queries, now).await?;
        self.connection = Some(connection);
        Ok(facts)
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
    Ok(rows.into_iter().map(facts).collect())
}

impl Store {
    /// The system domain whose postmaster `<postmaster>` without a domain is.
    ///
    /// # Errors
    /// Postgres is away.
    pub async fn default_system_domain(&self) -> Result<Option<String>, StoreError> {
        let name = sqlx::query_scalar(
            "/* default_system_domain */ SELECT name FROM domain \
             WHERE tenant IS NULL AND serves ORDER BY is_default DESC, sort_order, name LIMIT 1",
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(name)
    }
}

fn facts((system, shared_inboxes, suspended, mailbox, quota_left): Row) -> RecipientStatus {
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
