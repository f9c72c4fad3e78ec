//! Final delivery: a batch of mails becomes rows in one statement (`accept_mail` of the
//! schema), which resolves owners, checks bounds, numbers and inserts.

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

use crate::message::{RAW_PART_BYTES, class_of};
use crate::retention::retention_class;
use crate::{Store, StoreError};

/// A mail as it is stored: what all of its recipients share.
#[derive(Debug, Clone)]
pub struct NewMail {
    /// Its id; of the same millisecond as its recipients' message ids, so that raw data and
    /// messages fall into one partition.
    pub id: Uuid,
    /// Its data.
    pub raw: RawData,
    /// Where a `for` clause goes in it, uncompressed.
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

/// zstd of the stored `Received:` field and the data.
#[derive(Debug, Clone)]
pub enum RawData {
    /// To be stored with the messages. At most [`RAW_PART_BYTES`], since other mail waits meanwhile.
    Inline(Vec<u8>),
    /// In the store already: [`Store::store_raw`].
    StoredSeparately,
}

/// One recipient of a mail.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The message's id.
    pub id: Uuid,
    /// Where it goes.
    pub address: RecipientAddress,
    /// What its local part is on a system domain.
    pub reserved: Reservation,
    /// Octets that this recipient reads.
    pub size: i32,
}

/// What became of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptOutcome {
    /// Committed, for all of its recipients, in their order.
    Stored(Vec<Arrival>),
    /// Nothing is stored: some recipient is not served any more.
    RecipientGone,
    /// Nothing is stored: it does not fit into the mailbox or address of some recipient, or its tenant, by the
    /// sums that are kept; [`MailWriter::expire_usage`] makes those of these inboxes exact.
    OverQuota(Vec<Uuid>),
}

/// What is known of the recipients of a mail before it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPreflight {
    /// Retention of its messages, each class once.
    pub classes: Vec<RetentionClass>,
    /// Whether it does not fit into the mailbox of some recipient.
    pub over_quota: bool,
}

/// What every batch is judged by.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryLimits {
    /// Retention of mail without a tenant.
    pub free_class: RetentionClass,
    /// Octets that an address without a mailbox may hold.
    pub inbox_bytes: i64,
}

const ACCEPT_MAIL: &str = "/* accept_mail */ SELECT * FROM \
    accept_mail($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21)";

/// The connection of a process's one batcher.
#[derive(Debug)]
pub struct MailWriter {
    connection: PoolConnection<Postgres>,
}

impl Store {
    /// A connection to store mail over, to be kept.
    ///
    /// # Errors
    /// Postgres is away.
    pub async fn mail_writer(&self) -> Result<MailWriter, StoreError> {
        Ok(MailWriter { connection: self.pool.acquire().await? })
    }

    /// What storing a mail for these recipients would come to now, without any lock.
    ///
    /// # Errors
    /// Postgres is away.
    pub async fn preflight_delivery(
        &self,
        free_class: RetentionClass,
        recipients: &[NewMessage],
        now: Timestamp,
    ) -> Result<DeliveryPreflight, StoreError> {
        let rows: Vec<(i16, bool)> = sqlx::query_as(
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
        .bind(free_class.hours())
        .fetch_all(self.pool())
        .await?;
        let over_quota = rows.iter().any(|(_, over_quota)| *over_quota);
        let classes = rows.into_iter().map(|(class, _)| retention_class(class)).collect::<Result<_, _>>()?;
        Ok(DeliveryPreflight { classes, over_quota })
    }

    /// Stores the data of a mail ahead of its messages, in the classes that these will have; a part at a time,
    /// each in a transaction of its own, so that other mail waits for none of it. `octets` is the whole.
    ///
    /// # Errors
    /// Some parts may be stored: [`Self::discard_raw`].
    pub async fn store_raw(
        &self,
        mail: Uuid,
        classes: &[RetentionClass],
        for_clause_offset: i32,
        octets: &[u8],
    ) -> Result<(), StoreError> {
        let hours: Vec<i16> = classes.iter().map(|class| class.hours()).collect();
        let part_octets = usize::try_from(RAW_PART_BYTES).unwrap_or(usize::MAX);
        // A mail is far smaller than what an i32 counts.
        let len = i32::try_from(octets.len()).unwrap_or(i32::MAX);
        for (part, data) in (0_i16..).zip(octets.chunks(part_octets)) {
            let (offset, len) = if part == 0 { (for_clause_offset, len) } else { (0, 0) };
            sqlx::query("/* store_raw */ SELECT store_raw_part($1, $2, $3, $4, $5, $6)")
                .bind(&hours)
                .bind(mail)
                .bind(part)
                .bind(offset)
                .bind(len)
                .bind(data)
                .execute(self.pool())
                .await?;
        }
        Ok(())
    }

    /// Deletes data that was stored ahead, unless it was accepted.
    ///
    /// # Errors
    /// [`StoreError`]; then it goes with its partition.
    pub async fn discard_raw(&self, mail: Uuid, classes: &[RetentionClass]) -> Result<(), StoreError> {
        let hours: Vec<i16> = classes.iter().map(|class| class.hours()).collect();
        sqlx::query("/* discard_raw */ SELECT discard_raw($1, $2)")
            .bind(hours)
            .bind(mail)
            .execute(self.pool())
            .await?;
        Ok(())
    }
}

impl NewMessage {
    fn reserved_code(&self) -> i16 {
        reserved_code(&self.address, self.reserved)
    }
}

impl RawData {
    fn with_messages(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(octets) => Some(octets),
            Self::StoredSeparately => None,
        }
    }
}

impl MailWriter {
    /// Stores a batch in one autocommitted statement; when this returns `Ok`, what is
    /// [`AcceptOutcome::Stored`] is on disk. In a batch of more than one mail an
    /// [`AcceptOutcome::OverQuota`] may come from the other mails of the batch: only for a mail
    /// alone, after [`Self::expire_usage`], is it the last word.
    ///
    /// # Errors
    /// Nothing of the batch is stored, or (connection lost) it is not known.
    pub async fn accept_mail(
        &mut self,
        rules: DeliveryLimits,
        now: Timestamp,
        mails: &[NewMail],
    ) -> Result<Vec<AcceptOutcome>, StoreError> {
        let recipients = || {
            mails.iter().zip(1_i32..).flat_map(|(mail, of)| mail.recipients.iter().map(move |to| (of, to)))
        };
        let answer = sqlx::query(ACCEPT_MAIL)
            .bind(rules.free_class.hours())
            .bind(rules.inbox_bytes)
            .bind(now.to_sqlx())
            .bind(mails.iter().map(|mail| mail.id).collect::<Vec<_>>())
            .bind(mails.iter().map(NewMail::accepted_at).collect::<Vec<_>>())
            .bind(mails.iter().map(|mail| mail.raw.with_messages()).collect::<Vec<_>>())
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
            .fetch_one(&mut *self.connection)
            .await?;
        let mut decisions = decisions(&answer, recipients().map(|(_, to)| to.id))?.into_iter();
        Ok(mails.iter().map(|mail| outcome(decisions.by_ref().take(mail.recipients.len()))).collect())
    }

    /// Takes what has expired out of the sums that quotas of these inboxes are checked by.
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

    /// Whether the connection still answers; worth asking after it was idle.
    pub async fn is_alive(&mut self) -> bool {
        self.connection.ping().await.is_ok()
    }

    /// Closes the connection: one that may be broken must not go back to the pool.
    pub fn discard(self) {
        drop(self.connection.detach());
    }
}

impl NewMail {
    /// The time of its id, which is that of its messages.
    fn accepted_at(&self) -> jiff_sqlx::Timestamp {
        id_time(self.id).unwrap_or(Timestamp::UNIX_EPOCH).to_sqlx()
    }
}

/// What `address_owner` of the schema takes for the local part of an address.
pub(crate) fn reserved_code(address: &RecipientAddress, reserved: Reservation) -> i16 {
    match reserved {
        // System domains have none of it, even where its normal form is ASCII, as SMTP says.
        _ if address.has_non_ascii_local_part() => 3,
        Reservation::None => 0,
        Reservation::Refused => 1,
        Reservation::Platform => 2,
    }
}

/// What was decided of a recipient: what was stored, or why nothing was.
type Decision = Result<Arrival, Refusal>;

enum Refusal {
    RecipientGone,
    OverQuota(Uuid),
}

/// The arrays of the answer, by recipient.
fn decisions(answer: &PgRow, ids: impl Iterator<Item = Uuid>) -> Result<Vec<Decision>, StoreError> {
    let verdicts: Vec<i16> = answer.try_get("o_verdict")?;
    let seqs: Vec<Option<i64>> = answer.try_get("o_seq")?;
    let classes: Vec<i16> = answer.try_get("o_class")?;
    let tenants: Vec<Option<Uuid>> = answer.try_get("o_tenant")?;
    let owners: Vec<Uuid> = answer.try_get("o_owner")?;
    let inboxes: Vec<Uuid> = answer.try_get("o_inbox")?;
    let stored = seqs.into_iter().zip(classes).zip(tenants).zip(owners.into_iter().zip(inboxes));
    verdicts
        .into_iter()
        .zip(ids)
        .zip(stored)
        .map(|((verdict, id), (((seq, class), tenant), (owner, inbox)))| match (verdict, seq) {
            (0, Some(seq)) => Ok(Ok(Arrival { seq, id, class: class_of(class, id)?, tenant, owner, inbox })),
            (1, None) => Ok(Err(Refusal::RecipientGone)),
            (2, None) => Ok(Err(Refusal::OverQuota(inbox))),
            _ => Err(StoreError::UnknownWord { function: "accept_mail", word: verdict.to_string() }),
        })
        .collect()
}

/// What became of a mail, of the decisions on all its recipients: one that is gone tells more than one
/// into whose mailbox it does not fit.
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
