//! Final delivery: a batch of mails becomes rows in one statement (`accept_mail` of the
//! schema), which resolves owners, checks bounds, numbers and inserts.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, Postgres, Row as _};
use tempmail_model::address::{RecipientAddress, Reserved};
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use crate::message::class_of;
use crate::{Store, StoreError};

/// A mail as it is stored: what all of its recipients share.
#[derive(Debug, Clone)]
pub struct NewMail {
    /// Its id; of the same millisecond as its recipients' message ids, so that raw data and
    /// messages fall into one slot.
    pub id: Uuid,
    /// zstd of the stored `Received:` field and the data.
    pub raw: Vec<u8>,
    /// Where a `for` clause goes in it, uncompressed.
    pub for_at: i32,
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
    /// Where it goes.
    pub address: RecipientAddress,
    /// What its local part is on a system domain.
    pub reserved: Reserved,
    /// Octets that this recipient reads.
    pub size: i32,
}

/// What became of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Committed, for all of its recipients, in their order.
    Stored(Vec<Arrival>),
    /// Nothing is stored: some recipient is not served any more.
    RecipientGone,
    /// Nothing is stored: some recipient's mailbox, address or tenant has no room for it.
    OverQuota,
}

/// What every batch is judged by.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryRules {
    /// Retention of mail without a tenant.
    pub free_class: RetentionClass,
    /// Octets that an address without a mailbox may hold.
    pub inbox_bytes: i64,
}

const ACCEPT_MAIL: &str = "/* accept_mail */ SELECT * FROM \
    accept_mail($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20)";

/// The connection of a process's one batcher.
#[derive(Debug)]
pub struct Writer {
    connection: PoolConnection<Postgres>,
}

impl Store {
    /// A connection to store mail over, to be kept.
    ///
    /// # Errors
    /// Postgres is away.
    pub async fn writer(&self) -> Result<Writer, StoreError> {
        Ok(Writer { connection: self.pool.acquire().await? })
    }
}

impl Writer {
    /// Stores a batch in one autocommitted statement; when this returns `Ok`, what is
    /// [`Outcome::Stored`] is on disk. In a batch of more than one mail an
    /// [`Outcome::OverQuota`] may come from the other mails of the batch: only for a mail
    /// alone is it the last word.
    ///
    /// # Errors
    /// Nothing of the batch is stored, or (connection lost) it is not known.
    pub async fn accept_mail(
        &mut self,
        rules: DeliveryRules,
        now: Timestamp,
        mails: &[NewMail],
    ) -> Result<Vec<Outcome>, StoreError> {
        let recipients = || {
            mails.iter().zip(1_i32..).flat_map(|(mail, of)| mail.recipients.iter().map(move |to| (of, to)))
        };
        let answer = sqlx::query(ACCEPT_MAIL)
            .bind(rules.free_class.hours())
            .bind(rules.inbox_bytes)
            .bind(now.to_sqlx())
            .bind(mails.iter().map(|mail| mail.id).collect::<Vec<_>>())
            .bind(mails.iter().map(|mail| mail.raw.as_slice()).collect::<Vec<_>>())
            .bind(mails.iter().map(|mail| mail.for_at).collect::<Vec<_>>())
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
            .bind(recipients().map(|(_, to)| reserved_code(to.reserved)).collect::<Vec<_>>())
            .bind(recipients().map(|(_, to)| to.size).collect::<Vec<_>>())
            .fetch_one(&mut *self.connection)
            .await?;
        let mut judged = judged(&answer, recipients().map(|(_, to)| to.id))?.into_iter();
        Ok(mails.iter().map(|mail| outcome(judged.by_ref().take(mail.recipients.len()))).collect())
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

fn reserved_code(reserved: Reserved) -> i16 {
    match reserved {
        Reserved::No => 0,
        Reserved::Refused => 1,
        Reserved::Platform => 2,
    }
}

/// A recipient's verdict: what was stored, or why nothing was.
type Judged = Result<Arrival, Refusal>;

enum Refusal {
    RecipientGone,
    OverQuota,
}

/// The arrays of the answer, by recipient.
fn judged(answer: &PgRow, ids: impl Iterator<Item = Uuid>) -> Result<Vec<Judged>, StoreError> {
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
            (1, _) => Ok(Err(Refusal::RecipientGone)),
            _ => Ok(Err(Refusal::OverQuota)),
        })
        .collect()
}

/// What became of a mail, of all its recipients' verdicts: one that is gone tells more than one
/// that has no room.
fn outcome(judged: impl Iterator<Item = Judged>) -> Outcome {
    judged.fold(Outcome::Stored(Vec::new()), |outcome, one| match (outcome, one) {
        (Outcome::RecipientGone, _) | (_, Err(Refusal::RecipientGone)) => Outcome::RecipientGone,
        (Outcome::OverQuota, _) | (_, Err(Refusal::OverQuota)) => Outcome::OverQuota,
        (Outcome::Stored(mut stored), Ok(message)) => {
            stored.push(message);
            Outcome::Stored(stored)
        }
    })
}
