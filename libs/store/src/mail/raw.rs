//! Raw data of mails: compressed (zstd), and stored in parts.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use super::message::MessageRow;
use super::partition::each_class;
use crate::error::StoreError;
use crate::pool::Store;
use crate::row::first_column;

/// Bytes of a part of a mail's compressed raw data; the last part may be shorter.
pub const RAW_PART_BYTES: i64 = 256 << 10;

/// The beginning of a mail's raw data, and what is needed to read the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawHead {
    /// Offset in the uncompressed data where the `for` clause goes.
    pub for_clause_offset: i32,
    /// Bytes of the compressed data.
    pub stored_len: i64,
    /// Its first bytes, compressed: as many as were requested, or all.
    pub bytes: Vec<u8>,
}

/// A message with the beginning of its raw data.
#[derive(Debug, Clone)]
pub struct StoredMessage {
    /// The message.
    pub row: MessageRow,
    /// `None` where the raw data no longer exists.
    pub raw: Option<RawHead>,
}

impl StoredMessage {
    pub(crate) fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let raw = match row.try_get("for_clause_offset")? {
            None => None,
            Some(for_clause_offset) => Some(RawHead {
                for_clause_offset,
                stored_len: row.try_get("stored_len")?,
                bytes: row.try_get("head")?,
            }),
        };
        Ok(Self { row: MessageRow::from_row(row)?, raw })
    }
}

/// zstd of the stored `Received:` field and the data.
#[derive(Debug, Clone)]
pub enum RawData {
    /// Stored by the statement that stores the messages. At most [`RAW_PART_BYTES`], since other mail waits for it.
    Inline(Vec<u8>),
    /// Stored before, by [`Store::store_raw_part`].
    StoredSeparately {
        /// How long it is.
        bytes: usize,
    },
}

impl RawData {
    pub(super) fn inline(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(bytes) => Some(bytes),
            Self::StoredSeparately { .. } => None,
        }
    }

    /// How long it is.
    pub(super) fn stored_bytes(&self) -> i32 {
        let bytes = match self {
            Self::Inline(bytes) => bytes.len(),
            Self::StoredSeparately { bytes } => *bytes,
        };
        // A mail is far smaller than what an i32 counts.
        i32::try_from(bytes).unwrap_or(i32::MAX)
    }
}

/// SQL for the columns of [`raw_start`].
pub(crate) const RAW_COLUMNS: &str = "r.for_clause_offset, r.stored_len, r.head";

/// SQL for the first `len` bytes of the raw data of `message m`, as `r`. `lowest` and `highest` as [`mails_of_moment`]
/// gives them, so that each arm is pruned to one partition.
pub(crate) fn raw_start(lowest: &str, highest: &str, len: &str) -> String {
    let arms = each_class(|class| {
        format!(
            "SELECT for_clause_offset, stored_bytes::bigint AS stored_len, substring(data FROM 1 FOR {len}) AS head
             FROM raw WHERE m.class = {class} AND class = {class} AND mail = m.mail AND part = 0
               AND mail >= {lowest} AND mail <= {highest}"
        )
    });
    format!("({arms}) r")
}

/// The lowest and the highest id of a message's millisecond: the ids of a mail and its messages have the same time.
pub(crate) fn mails_of_moment(message: Uuid) -> [Uuid; 2] {
    const WITHIN: u128 = (1 << 80) - 1;
    [message.as_u128() & !WITHIN, message.as_u128() | WITHIN].map(Uuid::from_u128)
}

impl Store {
    /// Stores a part (from 0) of the raw data of a mail before its messages, in the classes that these will have. It is a
    /// transaction of its own, so that other mail does not wait for all parts. `false` where it is the last one.
    ///
    /// # Errors
    /// Some parts may be stored: [`Self::discard_raw`].
    pub async fn store_raw_part(
        &self,
        mail: Uuid,
        classes: &[RetentionClass],
        for_clause_offset: i32,
        data: &[u8],
        part: i16,
    ) -> Result<bool, StoreError> {
        let hours: Vec<i16> = classes.iter().map(|class| class.hours()).collect();
        let part_len = usize::try_from(RAW_PART_BYTES).unwrap_or(usize::MAX);
        let mut rest = data.chunks(part_len).skip(usize::from(part.unsigned_abs()));
        // A mail is far smaller than what an i32 counts.
        let len = i32::try_from(data.len()).unwrap_or(i32::MAX);
        let (offset, len) = if part == 0 { (for_clause_offset, len) } else { (0, 0) };
        let statement = sqlx::query("/* store_raw_part */ SELECT store_raw_part($1, $2, $3, $4, $5, $6)")
            .bind(hours)
            .bind(mail)
            .bind(part)
            .bind(offset)
            .bind(len)
            .bind(rest.next());
        self.execute(statement).await?;
        Ok(rest.next().is_some())
    }

    /// Deletes raw data whose mail was not accepted.
    ///
    /// # Errors
    /// [`StoreError`]; then it is deleted with its partition.
    pub async fn discard_raw(&self, mail: Uuid, classes: &[RetentionClass]) -> Result<(), StoreError> {
        let hours: Vec<i16> = classes.iter().map(|class| class.hours()).collect();
        self.execute(sqlx::query("/* discard_raw */ SELECT discard_raw($1, $2)").bind(hours).bind(mail)).await
    }

    /// Up to `len` bytes of a message's compressed raw data from `offset` (from 0) to the end of the part that
    /// contains it; `None` where the data no longer exists. Cheap at any offset: the column is not compressed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn raw_chunk(
        &self,
        row: &MessageRow,
        offset: i64,
        len: i32,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.fetch_optional(
            sqlx::query(
                "/* raw_chunk */ SELECT substring(data FROM $4::integer FOR $5) FROM raw
            WHERE class = $1 AND mail = $2 AND part = $3::smallint",
            )
            .bind(row.class.hours())
            .bind(row.mail)
            .bind(offset / RAW_PART_BYTES)
            .bind(offset % RAW_PART_BYTES + 1)
            .bind(len),
            first_column,
        )
        .await
    }
}
