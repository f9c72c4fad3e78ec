//! Pro sessions. A session is a JWT that names its token; the store only knows which of them were ended.

use jiff::{SignedDuration, Timestamp};
use sqlx::Row as _;
use tempmail_model::id::lowest_id;
use tempmail_model::token::TokenKind;
use uuid::Uuid;

use super::token::{ApiToken, token};
use crate::error::StoreError;
use crate::pool::Store;

/// How long it is kept that a session was ended: longer than any session is valid.
const ENDED_SESSION_RETENTION: SignedDuration = SignedDuration::from_hours(24);

/// A token, and the state of a session of it.
#[derive(Debug, Clone)]
pub struct SessionToken {
    /// The token, which may be revoked or expired.
    pub token: ApiToken,
    /// Whether the session was ended.
    pub ended: bool,
}

impl Store {
    /// The active Pro token of this id, and whether a session of it was ended.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_session_token(
        &self,
        token: Uuid,
        session: Uuid,
    ) -> Result<Option<SessionToken>, StoreError> {
        let statement = sqlx::query(concat!(
            "/* find_session_token */ ",
            token!(", EXISTS (SELECT FROM ended_session e WHERE e.id = $3) AS ended"),
            "k.id = $1 AND k.kind = $2 AND k.active"
        ));
        self.fetch_optional(statement.bind(token).bind(TokenKind::Pro.as_str()).bind(session), |row| {
            Ok(SessionToken { token: ApiToken::from_row(row)?, ended: row.try_get("ended")? })
        })
        .await
    }

    /// Ends a session of a token, in all processes; `false` where it has ended already.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn end_session(&self, session: Uuid, token: Uuid, tenant: Uuid) -> Result<bool, StoreError> {
        let statement = sqlx::query("/* end_session */ SELECT end_session($1, $2, $3)");
        self.fetch_value(statement.bind(session).bind(token).bind(tenant)).await
    }

    /// Forgets sessions that were ended and have expired since. Returns how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_ended_sessions(&self, now: Timestamp) -> Result<u64, StoreError> {
        let statement = sqlx::query("/* delete_ended_sessions */ DELETE FROM ended_session WHERE id < $1");
        self.affected_rows(statement.bind(lowest_id(now - ENDED_SESSION_RETENTION))).await
    }
}
