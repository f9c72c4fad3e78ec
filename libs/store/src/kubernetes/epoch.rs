//! The epochs of the operators that lead, one in each cluster. Every statement by which an operator writes locks its epoch first, so
//! that an operator that lost the lead can't write any more.

use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::{Statement, Store};

/// The epoch under which a leading operator writes. A statement under an earlier one fails with
/// [`StoreError::Fenced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(i64);

/// The text of a statement that locks the epoch `$1` first, for the object `$2`: a comment with its name, and its text with
/// `(SELECT locked FROM epoch)` as a condition of each part that writes. It fails with [`StoreError::Fenced`]
/// unless `$1` is the current epoch, also where it finds no row.
macro_rules! fenced {
    ($name:literal, $statement:expr) => {
        concat!($name, " WITH epoch AS MATERIALIZED (SELECT lock_epoch($1, $2) AS locked)", $statement)
    };
}

/// The text of a fenced statement that activates the row `$3` of a table if it is still that of the object `$2`.
macro_rules! activate_row {
    ($name:literal, $table:literal) => {
        fenced!(
            $name,
            concat!(
                " UPDATE ",
                $table,
                " t SET active = true FROM resource r
                  WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND r.row_id = $3 AND t.id = $3"
            )
        )
    };
}

pub(super) use {activate_row, fenced};

impl Epoch {
    /// It as an argument of a statement.
    pub(super) fn number(self) -> i64 {
        self.0
    }

    /// A statement with the epoch and the uid of an object, if there is one, as its first two arguments.
    pub(super) fn statement(self, text: &'static str, uid: impl Into<Option<Uuid>>) -> Statement<'static> {
        let uid: Option<Uuid> = uid.into();
        sqlx::query(text).bind(self.0).bind(uid)
    }
}

impl Store {
    /// Starts a new epoch of a cluster, which ends that of every other operator of it; `None`: the cluster is released, and
    /// no operator of it may lead.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn acquire_epoch(&self, cluster: Uuid) -> Result<Option<Epoch>, StoreError> {
        let statement = sqlx::query("/* acquire_epoch */ SELECT acquire_epoch($1)").bind(cluster);
        let epoch: Option<i64> = self.fetch_value(statement).await?;
        Ok(epoch.map(Epoch))
    }

    /// Checks that the epoch is still the current one.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where it is not.
    pub async fn check_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        let statement = "/* check_epoch */ SELECT lock_epoch($1, NULL)";
        self.execute(sqlx::query(statement).bind(epoch.0)).await
    }
}
