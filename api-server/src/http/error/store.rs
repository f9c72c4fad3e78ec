//! Failures of the store, as clients see them.

use tempmail_store::StoreError;

/// What a client is answered when the store fails. The cause is logged by the conversion, once.
pub(crate) enum StoreFailure {
    Unavailable,
    Internal,
}

impl From<StoreError> for StoreFailure {
    fn from(error: StoreError) -> Self {
        match error {
            unavailable if unavailable.is_unavailable() => {
                tracing::warn!("{unavailable}");
                Self::Unavailable
            }
            // The server's message may quote data: only its code and names are logged.
            StoreError::Database(error) => {
                let refused = error.as_database_error();
                tracing::error!(
                    db.code = refused.and_then(|e| e.code()).as_deref(),
                    db.table = refused.and_then(|e| e.table()),
                    db.constraint = refused.and_then(|e| e.constraint()),
                    "a statement failed"
                );
                Self::Internal
            }
            // Written by a newer version: during an upgrade another process may read it.
            unknown @ (StoreError::UnknownWord { .. } | StoreError::Inconsistent { .. }) => {
                tracing::error!("{unknown}");
                Self::Unavailable
            }
            other => {
                tracing::error!("{other}");
                Self::Internal
            }
        }
    }
}
