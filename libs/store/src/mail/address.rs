//! Addresses: what a local part is on a system domain, as SQL functions take it, and what ingest needs to recognise
//! plain shared inboxes.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use tempmail_model::address::{RecipientAddress, Reservation};

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::first_column;

/// What `address_owner` of the schema takes for the local part of an address.
pub(crate) fn reserved_code(address: &RecipientAddress, reserved: Reservation) -> i16 {
    match reserved {
        Reservation::Sink => 4,
        // System domains have none of it, even where its normal form is ASCII, as SMTP says.
        _ if address.has_non_ascii_local_part() => 3,
        Reservation::None => 0,
        Reservation::Refused => 1,
        Reservation::Platform => 2,
    }
}

impl Store {
    /// Names of the system domains that serve shared inboxes.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_shared_domains(&self) -> Result<Vec<String>, StoreError> {
        let statement = sqlx::query(
            "/* list_shared_domains */ SELECT name FROM domain WHERE tenant IS NULL AND serves AND shared_inboxes",
        );
        self.fetch_all(statement, first_column).await
    }

    /// Local part and domain of up to `limit` addresses with a mailbox, live or held, that was created since
    /// `since`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_mailbox_addresses(
        &self,
        since: Timestamp,
        limit: i64,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let statement = sqlx::query(
            "/* list_mailbox_addresses */ SELECT m.local_part, d.name \
             FROM mailbox m JOIN domain d ON d.id = m.domain \
             WHERE m.id >= time_id($1) AND d.tenant IS NULL LIMIT $2",
        )
        .bind(since.to_sqlx())
        .bind(limit);
        self.fetch_all(statement, |row| Ok((row.try_get(0)?, row.try_get(1)?))).await
    }
}
