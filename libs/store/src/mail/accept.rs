//! Final delivery: one statement (the SQL function `accept_mail`) decides the owners of a batch of mails, checks
//! quotas, and numbers and inserts the messages.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, Postgres, Row as _};
use tempmail_model::address::{RecipientAddress, Reservation};
use tempmail_model::id::id_time;
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use super::class::{class_of, retention_class};
use super::raw::RawData;
use super::reserved::reserved_code;
use crate::error::StoreError;
use crate::pool::{Statement, Store};

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
    /// From header as text, at most 512 characters.
    pub from_text: String,
    /// First address of the From header, "" without one.
    pub from_email: String,
    /// At most 1,000 characters.
    pub subject: String,
    /// At most 100 characters.
    pub preview: String,
    /// At least one.
    pub recipients: Vec<NewMessage>,
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
    /// tenant. [`MailWriter::expire_usage`] makes the sums of these inboxes exact.
    OverQuota(Vec<Uuid>),
}

/// What storing a mail would need, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPreflight {
    /// Retention classes of its messages, each once.
    pub classes: Vec<RetentionClass>,
    /// Whether it exceeds the quota of a recipient's mailbox.
    pub over_quota: bool,
}

/// Limits from the configuration.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryLimits {
    /// Retention of mail without a tenant.
    pub free_class: RetentionClass,
    /// Bytes that an address without a mailbox may hold.
    pub inbox_bytes: i64,
}

const ACCEPT_MAIL: &str = "/* accept_mail */ SELECT o_result, o_seq, o_class, o_tenant, o_owner, o_inbox FROM \
    accept_mail($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21)";

/// The connection over which a process stores mail.
#[derive(Debug)]
pub struct MailWriter {
    connection: PoolConnection<Postgres>,
}

impl Store {
    /// A connection to store mail over. The caller keeps it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mail_writer(&self) -> Result<MailWriter, StoreError> {
        Ok(MailWriter { connection: self.pool().acquire().await? })
    }

    /// Checks what storing a mail for these recipients would need now; takes no lock.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn preflight_delivery(
        &self,
        free_class: RetentionClass,
        recipients: &[NewMessage],
        now: Timestamp,
    ) -> Result<DeliveryPreflight, StoreError> {
        let statement = sqlx::query(
            "/* preflight_delivery */
            SELECT coalesce(o.retention_hours, $6) AS class,
                   bool_or(o.owner_kind = 1 AND mailbox_used(o.mailbox, $5) + r.size > o.quota) AS over_quota
            FROM unnest($1::text[], $2::text[], $3::smallint[], $4::integer[]) AS r (domain, local_part, reserved, size)
            CROSS JOIN LATERAL address_owner(r.domain, r.local_part, r.reserved, $5) o
            WHERE o.receives GROUP BY 1",
        )
        .bind(recipients.iter().map(|to| to.address.domain()).collect::<Vec<_>>())
        .bind(recipients.iter().map(|to| to.address.base_local_part()).collect::<Vec<_>>())
        .bind(recipients.iter().map(NewMessage::reserved_code).collect::<Vec<_>>())
        .bind(recipients.iter().map(|to| to.size).collect::<Vec<_>>())
        .bind(now.to_sqlx())
        .bind(free_class.hours());
        let rows: Vec<(i16, bool)> =
            self.fetch_all(statement, |row| Ok((row.try_get("class")?, row.try_get("over_quota")?))).await?;
        let over_quota = rows.iter().any(|(_, over_quota)| *over_quota);
        let classes = rows.into_iter().map(|(class, _)| retention_class(class)).collect::<Result<_, _>>()?;
        Ok(DeliveryPreflight { classes, over_quota })
    }
}

impl NewMessage {
    fn reserved_code(&self) -> i16 {
        reserved_code(&self.address, self.reserved)
    }
}

impl MailWriter {
    /// Stores a batch in one autocommitted statement: each [`AcceptOutcome::Stored`] is on disk when this returns
    /// `Ok`. In a batch of more than one mail, [`AcceptOutcome::OverQuota`] may be due to the other mails; it is
    /// final for a batch of one mail after [`Self::expire_usage`].
    ///
    /// # Errors
    /// Nothing of the batch is stored; where the connection was lost, that is not known.
    pub async fn accept_mail(
        &mut self,
        limits: DeliveryLimits,
        now: Timestamp,
        mails: &[NewMail],
    ) -> Result<Vec<AcceptOutcome>, StoreError> {
        let answer = match self.try_accept(limits, now, mails).await {
            Err(error) if error.is_plan_outdated() => {
                self.connection.clear_cached_statements().await?;
                self.try_accept(limits, now, mails).await?
            }
            answer => answer?,
        };
        let ids = mails.iter().flat_map(|mail| &mail.recipients).map(|to| to.id);
        let mut decisions = decisions(&answer, ids)?.into_iter();
        Ok(mails.iter().map(|mail| outcome(decisions.by_ref().take(mail.recipients.len()))).collect())
    }

    async fn try_accept(
        &mut self,
        limits: DeliveryLimits,
        now: Timestamp,
        mails: &[NewMail],
    ) -> Result<PgRow, StoreError> {
        Ok(accept_mail(limits, now, mails).fetch_one(&mut *self.connection).await?)
    }

    /// Subtracts expired messages from the sums by which the quotas of these inboxes are checked.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn expire_usage(&mut self, inboxes: &[Uuid], now: Timestamp) -> Result<(), StoreError> {
        sqlx::query("/* expire_usage */ SELECT expire_usage($1, $2)")
            .bind(inboxes)
            .bind(now.to_sqlx())
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    /// Whether the connection still works; to be checked after it was idle.
    pub async fn is_alive(&mut self) -> bool {
        self.connection.ping().await.is_ok()
    }

    /// Closes the connection, which may be broken, instead of returning it to the pool.
    pub fn discard(self) {
        drop(self.connection.detach());
    }
}

/// The statement that stores a batch.
fn accept_mail(limits: DeliveryLimits, now: Timestamp, mails: &[NewMail]) -> Statement<'_> {
    let recipients =
        || mails.iter().zip(1_i32..).flat_map(|(mail, of)| mail.recipients.iter().map(move |to| (of, to)));
    sqlx::query(ACCEPT_MAIL)
        .bind(limits.free_class.hours())
        .bind(limits.inbox_bytes)
        .bind(now.to_sqlx())
        .bind(mails.iter().map(|mail| mail.id).collect::<Vec<_>>())
        .bind(mails.iter().map(NewMail::accepted_at).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.raw.inline()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.for_clause_offset).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.sender.as_str()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.from_text.as_str()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.from_email.as_str()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.subject.as_str()).collect::<Vec<_>>())
        .bind(mails.iter().map(|mail| mail.preview.as_str()).collect::<Vec<_>>())
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
            _ => Err(StoreError::UnknownWord { function: "accept_mail", word: result.to_string() }),
        })
        .collect()
}

/// The outcome for a mail from the decisions for its recipients. A recipient that is no longer served takes
/// precedence over a full mailbox.
fn outcome(decisions: impl Iterator<Item = Decision>) -> AcceptOutcome {
    decisions.fold(AcceptOutcome::Stored(Vec::new()), |outcome, one| match (outcome, one) {
        (AcceptOutcome::RecipientGone, _) | (_, Err(Refusal::RecipientGone)) => AcceptOutcome::RecipientGone,
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
