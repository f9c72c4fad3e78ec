//! Pages of a list of messages.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use tempmail_model::limits::PAGE_SIZE;
use uuid::Uuid;

use super::message::MessageRow;
use crate::error::StoreError;
use crate::page::rows_before;
use crate::pool::Store;
use crate::row::first_column;

/// Messages that one statement skips. It takes a fraction of a millisecond for them: a longer one would keep Postgres on a
/// core, and what other requests wait for behind it.
const SKIPPED_MAX: i64 = 500;

/// The statements of a list: of the messages of an owner (`$1`) that are unexpired now (`$2`), those before a position
/// (`$3`), newest first, `$4` of them.
pub(super) struct MessageList {
    /// The position of the last of them; no row where there are fewer.
    pub(super) skip: &'static str,
    /// Their rows.
    pub(super) read: &'static str,
}

impl Store {
    /// A page (from 1) of a list, of the messages before a position.
    pub(super) async fn message_page(
        &self,
        list: &MessageList,
        owner: Uuid,
        before: i64,
        page: i64,
        now: Timestamp,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let (mut before, mut skipped) = (before, rows_before(page, PAGE_SIZE));
        while skipped > 0 {
            let step = skipped.min(SKIPPED_MAX);
            let statement = sqlx::query(list.skip).bind(owner).bind(now.to_sqlx()).bind(before).bind(step);
            match self.fetch_optional(statement, first_column).await? {
                Some(last) => before = last,
                None => return Ok(Vec::new()),
            }
            skipped -= step;
        }
        let statement = sqlx::query(list.read).bind(owner).bind(now.to_sqlx()).bind(before).bind(PAGE_SIZE);
        self.fetch_all(statement, MessageRow::from_row).await
    }
}
