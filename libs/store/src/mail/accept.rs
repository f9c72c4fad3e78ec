//! Final delivery: one statement (the SQL function `accept_mail`) decides the owners of a batch of mails, checks
//! quotas, and numbers and inserts the messages.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, Row as _};
use tempmail_model::address::{RecipientAddress, Reservation};
use tempmail_model::id::id_time;
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use super::address::reserved_code;
use super::partition::{class_of, retention_class};
use super::raw::RawData;
use super::stream::ENSURE_GENERATION;
use crate::error::StoreError;
use crate::pool::{Statement, Store};
use crate::pooled_connection::{PooledConnection, answered};

/// A mail to store: the data that its recipients share.
#[derive(Debug, Clone)]
pub struct NewMail {
    /// Its id, of the same millisecond as the ids of its messages, so that raw data and messages are in one
    /// partition.
    pub id: Uuid,
    /// Its raw data.
    pub raw: RawData,
    /// Offset in the uncompressed data where a `for` clause goes.
    pub for_clause_offset: i32,
    /// Reverse-path, "" for the null one.
    pub sender: String,
    /// What lists show of it.
    pub summary: MailSummary,
    /// At least one.
    pub recipients: Vec<NewMessage>,
}

/// What lists show of a mail. It is extracted once, when the mail is accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailSummary {
    /// The From header as text, RFC 2047 decoded, at most 512 characters.
    pub from_text: String,
    /// The first address in it, "" without one.
    pub from_email: String,
    /// The Subject, decoded, at most 1,000 characters.
    pub subject: String,
    /// The first 100 characters of the text (else of the HTML's text), white space folded.
    pub preview: String,
}

/// One recipient of a mail.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The message's id.
    pub id: Uuid,
    /// The recipient.
    pub address: RecipientAddress,
    /// What its local part is on a system domain.
    pub reserved: Reservation,
    /// Octets that this recipient downloads.
    pub size: i32,
}

/// What came of storing a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptOutcome {
    /// Committed, for all of its recipients, in their order.
    Stored(Vec<Arrival>),
    /// Nothing is stored: a recipient is no longer served.
    RecipientGone,
    /// Nothing is stored: the stored sums leave no room for it in the mailbox or address of a recipient, or in its
    /// tenant. [`Store::expire_usage`] makes the sums of these inboxes exact.
    OverQuota(Vec<Uuid>),
    /// Nothing is stored: the tenant of a recipient would store more than [`DeliveryLimits::tenant_bytes`].
    StoreFull,
}

/// What storing a mail would need, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPreflight {
    /// Retention classes of its messages, each once.
    pub classes: Vec<RetentionClass>,
    /// The mailboxes and addresses of its recipients that it does not fit into by the stored sums, which may still
    /// count expired mail ([`Store::expire_usage`]).
    pub full_inboxes: Vec<Uuid>,
    /// Whether the tenant of a recipient stores as much as its own limits allow.
    pub tenant_full: bool,
    /// Whether the tenant of a recipient stores [`DeliveryLimits::tenant_bytes`] already.
    pub store_full: bool,
}

/// Limits from the configuration, and what is left of them.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryLimits {
    /// Retention of mail without a tenant.
    pub free_class: RetentionClass,
    /// Bytes that an address without a mailbox may hold.
    pub inbox_bytes: i64,
    /// Bytes that any one tenant may store, besides its own limits.
    pub tenant_bytes: i64,
}

const ACCEPT_MAIL: &str = "/* accept_mail */ SELECT o_result, o_seq, o_class, o_tenant, o_owner, o_inbox FROM \
    accept_mail($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22,$23)";

const PREFLIGHT_DELIVERY: &str = "/* preflight_delivery */
    SELECT x.class, coalesce(array_agg(x.inbox) FILTER (WHERE x.used + x.size > x.quota), '{}') AS full_inboxes,
           coalesce(bool_or(x.tenant_used >= x.tenant_bytes), false) AS tenant_full,
           coalesce(bool_or(x.tenant_used >= $9), false) AS store_full
    FROM (SELECT coalesce(o.retention_hours, $7) AS class, i.inbox, r.size,
                 CASE WHEN o.owner_kind <> 0 THEN (SELECT k.bytes FROM scope_used(i.inbox, $6) k) END AS used,
                 coalesce(o.quota, $8) AS quota,
                 (SELECT t.mailbox_bytes::numeric * t.mailbox_limit FROM tenant t WHERE t.id = o.tenant)
                     AS tenant_bytes,
                 CASE WHEN o.tenant IS NOT NULL THEN (SELECT k.bytes FROM scope_used(o.tenant, $6) k) END
                     AS tenant_used
          FROM unnest($1::text[], $2::text[], $3::smallint[], $4::uuid[], $5::integer[])
               AS r (domain, local_part, reserved, key, size)
          CROSS JOIN LATERAL address_owner(r.domain, r.local_part, r.reserved, $6) o
          CROSS JOIN LATERAL (SELECT coalesce(o.mailbox, r.key) AS inbox) i
          WHERE o.receives) x
    GROUP BY 1";

/// How long Postgres works on a statement of a [`MailWriter`]. Its process should wait longer for the answer
/// ([`Store::within`]): then a mail that is deferred is stored only where Postgres fell silent.
const WRITER_SETTINGS: &str = "SET statement_timeout = '5s'";

/// The stream's row as [`accept_mail`](MailWriter::accept_mail) locks it.
const PROBE_STREAM: &str = "/* probe_stream */ SELECT FROM stream WHERE singleton FOR NO KEY UPDATE";

/// The connection over which a process stores mail. Drop it after an error for which
/// [`StoreError::is_unavailable`] holds: it may be broken.
#[derive(Debug)]
pub struct MailWriter {
    connection: PooledConnection,
}

impl Store {
    /// A connection to store mail over. The caller keeps it. Begins a generation of the stream where the server
    /// changed, as [`Self::ensure_generation`] does.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mail_writer(&self) -> Result<MailWriter, StoreError> {
        let mut connection = self.acquire().await?;
        connection.close_on_drop();
        answered(connection.deadline(), sqlx::raw_sql(WRITER_SETTINGS).execute(&mut *connection)).await?;
        // A server keeps its history while a connection lives.
        answered(connection.deadline(), sqlx::query(ENSURE_GENERATION).execute(&mut *connection)).await?;
        Ok(MailWriter { connection })
    }

    /// Checks what storing a mail for these recipients would need now; takes no lock.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn preflight_delivery(
        &self,
        limits: DeliveryLimits,
        recipients: &[NewMessage],
        now: Timestamp,
    ) -> Result<DeliveryPreflight, StoreError> {
        let statement = sqlx::query(PREFLIGHT_DELIVERY)
            .bind(recipients.iter().map(|to| to.address.domain()).collect::<Vec<_>>())
            .bind(recipients.iter().map(|to| to.address.base_local_part()).collect::<Vec<_>>())
            .bind(recipients.iter().map(NewMessage::reserved_code).collect::<Vec<_>>())
            .bind(recipients.iter().map(|to| to.address.inbox_key()).collect::<Vec<_>>())
            .bind(recipients.iter().map(|to| to.size).collect::<Vec<_>>())
            .bind(now.to_sqlx())
            .bind(limits.free_class.hours())
            .bind(limits.inbox_bytes)
            .bind(limits.tenant_bytes);
        let rows: Vec<(i16, Vec<Uuid>, bool, bool)> = self
            .fetch_all(statement, |row| {
                Ok((
                    row.try_get("class")?,
                    row.try_get("full_inboxes")?,
                    row.try_get("tenant_full")?,
                    row.try_get("store_full")?,
                ))
            })
            .await?;
        let mut ahead = DeliveryPreflight {
            classes: Vec::with_capacity(rows.len()),
            full_inboxes: Vec::new(),
            tenant_full: false,
            store_full: false,
        };
        for (class, mut full_inboxes, tenant_full, store_full) in rows {
            ahead.classes.push(retention_class(class)?);
            ahead.full_inboxes.append(&mut full_inboxes);
            ahead.tenant_full |= tenant_full;
            ahead.store_full |= store_full;
        }
        Ok(ahead)
    }

    /// Subtracts expired messages from the sums by which the quotas of these inboxes are checked. An inbox that its
    /// owner is changing at that moment is left as it is, so that this waits for nobody.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn expire_usage(&self, inboxes: &[Uuid], now: Timestamp) -> Result<(), StoreError> {
        let statement = sqlx::query("/* expire_usage */ SELECT expire_usage($1, $2)");
        self.execute(statement.bind(inboxes).bind(now.to_sqlx())).await
    }
}

impl DeliveryPreflight {
    /// Whether it does not fit into an inbox, or into what its tenant may have.
    pub fn is_over_quota(&self) -> bool {
        self.tenant_full || !self.full_inboxes.is_empty()
    }
}

impl NewMessage {
    pub(super) fn reserved_code(&self) -> i16 {
        reserved_code(&self.address, self.reserved)
    }
}

impl MailWriter {
    /// Stores a batch in one autocommitted statement: each [`AcceptOutcome::Stored`] is on disk when this returns
    /// `Ok`. In a batch of more than one mail, [`AcceptOutcome::OverQuota`] may be due to the other mails; it is
    /// final for a batch of one mail after [`Store::expire_usage`].
    ///
    /// # Errors
    /// Nothing of the batch is stored; where the connection was lost, that is not known.
    pub async fn accept_mail(
        &mut self,
        limits: DeliveryLimits,
        now: Timestamp,
        mails: &[NewMail],
    ) -> Result<Vec<AcceptOutcome>, StoreError> {
        let deadline = self.connection.deadline();
        let answer = answered(deadline, self.run_accept(limits, now, mails)).await?;
        let ids = mails.iter().flat_map(|mail| &mail.recipients).map(|to| to.id);
        let mut decisions = decisions(&answer, ids)?.into_iter();
        Ok(mails.iter().map(|mail| outcome(decisions.by_ref().take(mail.recipients.len()))).collect())
    }

    async fn run_accept(
        &mut self,
        limits: DeliveryLimits,
        now: Timestamp,
        mails: &[NewMail],
    ) -> Result<PgRow, StoreError> {
        match self.try_accept(limits, now, mails).await {
            Err(error) if error.is_plan_outdated() => {
                self.connection.clear_cached_statements().await?;
                self.try_accept(limits, now, mails).await
            }
            answer => answer,
        }
    }

    async fn try_accept(
        &mut self,
        limits: DeliveryLimits,
        now: Timestamp,
        mails: &[NewMail],
    ) -> Result<PgRow, StoreError> {
        Ok(accept_mail(limits, now, mails).fetch_one(&mut *self.connection).await?)
    }

    /// Locks what mail locks first, and releases it at once.
    ///
    /// # Errors
    /// [`StoreError`]: no mail could be stored now.
    pub async fn probe(&mut self) -> Result<(), StoreError> {
        let deadline = self.connection.deadline();
        answered(deadline, sqlx::query(PROBE_STREAM).execute(&mut *self.connection)).await.map(drop)
    }

    /// Whether the connection still works: one that was idle for 2 s is asked, for 1 s at most.
    pub async fn is_alive(&mut self) -> bool {
        self.connection.is_alive().await
    }
}

/// The statement that stores a batch.
fn accept_mail(limits: DeliveryLimits, now: Timestamp, mails: &[NewMail]) -> Statement<'_> {
    let recipients =
        || mails.iter().zip(1_i32..).flat_map(|(mail, of)| mail.recipients.iter().map(move |to| (of, to)));
    sqlx::query(ACCEPT_MAIL)
        .bind(limits.free_class.hours())
        .bind(limits.inbox_bytes)
        .bind(limits.tenant_bytes)
        .bind(now.to_sqlx())
        .bind(mails.iter().map(|mail| mail.id).collect::<Vec<_>>())
        .bind(mails.iter().map(NewMail::accepted_at).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.raw.inline()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.raw.stored_bytes()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.for_clause_offset).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.sender.as_str()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.summary.from_text.as_str()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.summary.from_email.as_str()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.summary.subject.as_str()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.summary.preview.as_str()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.recipients.len() == 1).collect::<Vec<_>>())
        .bind(recipients().map(|(of, _)| of).collect::<Vec<_>>())
        .bind(recipients().map(|(_, to)| to.id).collect::<Vec<_>>())
        .bind(recipients().map(|(_, to)| to.address.as_str()).collect::<Vec<_>>())
        .bind(recipients().map(|(_, to)| to.address.base_local_part()).collect::<Vec<_>>())
        .bind(recipients().map(|(_, to)| to.address.domain()).collect::<Vec<_>>())
        .bind(recipients().map(|(_, to)| to.address.inbox_key()).collect::<Vec<_>>())
        .bind(recipients().map(|(_, to)| to.reserved_code()).collect::<Vec<_>>())
        .bind(recipients().map(|(_, to)| to.size).collect::<Vec<_>>())
}

impl NewMail {
    /// The time of its id, and of the ids of its messages.
    fn accepted_at(&self) -> jiff_sqlx::Timestamp {
        id_time(self.id).unwrap_or(Timestamp::UNIX_EPOCH).to_sqlx()
    }
}

/// What was decided for a recipient: its message was stored, or why not.
type Decision = Result<Arrival, Refusal>;

enum Refusal {
    RecipientGone,
    OverQuota(Uuid),
    StoreFull,
}

/// The decision for each recipient, from the arrays of the answer.
fn decisions(answer: &PgRow, ids: impl Iterator<Item = Uuid>) -> Result<Vec<Decision>, StoreError> {
    let results: Vec<i16> = answer.try_get("o_result")?;
    let seqs: Vec<Option<i64>> = answer.try_get("o_seq")?;
    let classes: Vec<i16> = answer.try_get("o_class")?;
    let tenants: Vec<Option<Uuid>> = answer.try_get("o_tenant")?;
    let owners: Vec<Uuid> = answer.try_get("o_owner")?;
    let inboxes: Vec<Uuid> = answer.try_get("o_inbox")?;
    let stored = seqs.into_iter().zip(classes).zip(tenants).zip(owners.into_iter().zip(inboxes));
    results
        .into_iter()
        .zip(ids)
        .zip(stored)
        .map(|((result, id), (((seq, class), tenant), (owner, inbox)))| match (result, seq) {
            (0, Some(seq)) => Ok(Ok(Arrival { seq, id, class: class_of(class, id)?, tenant, owner, inbox })),
            (1, None) => Ok(Err(Refusal::RecipientGone)),
            (2, None) => Ok(Err(Refusal::OverQuota(inbox))),
            (3, None) => Ok(Err(Refusal::StoreFull)),
            _ => Err(StoreError::UnknownWord { function: "accept_mail", word: result.to_string() }),
        })
        .collect()
}

/// The outcome for a mail from the decisions for its recipients. A recipient that is no longer served takes
/// precedence over a full store, and that over a full mailbox.
fn outcome(decisions: impl Iterator<Item = Decision>) -> AcceptOutcome {
    decisions.fold(AcceptOutcome::Stored(Vec::new()), |outcome, one| match (outcome, one) {
        (AcceptOutcome::RecipientGone, _) | (_, Err(Refusal::RecipientGone)) => AcceptOutcome::RecipientGone,
        (AcceptOutcome::StoreFull, _) | (_, Err(Refusal::StoreFull)) => AcceptOutcome::StoreFull,
        (AcceptOutcome::OverQuota(mut inboxes), Err(Refusal::OverQuota(inbox))) => {
            inboxes.push(inbox);
            AcceptOutcome::OverQuota(inboxes)
        }
        (AcceptOutcome::OverQuota(inboxes), Ok(_)) => AcceptOutcome::OverQuota(inboxes),
        (AcceptOutcome::Stored(_), Err(Refusal::OverQuota(inbox))) => AcceptOutcome::OverQuota(vec![inbox]),
        (AcceptOutcome::Stored(mut stored), Ok(message)) => {
            stored.push(message);
            AcceptOutcome::Stored(stored)
        }
    })
}
