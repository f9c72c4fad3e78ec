//! Turns at what reads more of the store than one page.

use std::time::Duration;

use tokio::time::timeout;
use uuid::Uuid;

use crate::http::error::ApiError;
use crate::http::key_turn::{KeyTurn, KeyTurns};

/// How long a request waits for a turn.
const WAIT: Duration = Duration::from_secs(8);

/// The turns of this process at later pages of messages, counts, searches and lists of mailboxes. A tenant, or a mailbox of
/// none, has one at a time: what it asks for at once keeps one core of Postgres busy, and leaves the others to other
/// requests.
pub(crate) struct LongReads {
    turns: KeyTurns<Uuid>,
}

impl LongReads {
    pub(crate) fn new() -> Self {
        Self { turns: KeyTurns::new(1) }
    }

    /// Waits for a turn of a tenant, or of a mailbox of none.
    ///
    /// # Errors
    /// [`ApiError::Busy`] where none has come within 8 s.
    pub(crate) async fn turn(&self, owner: Uuid) -> Result<KeyTurn<Uuid>, ApiError> {
        let turn = timeout(WAIT, self.turns.acquire(owner)).await;
        turn.map_err(|_| ApiError::Busy("long_reads"))
    }

    /// A turn for a page of a list; the first page needs none.
    ///
    /// # Errors
    /// As [`Self::turn`].
    pub(crate) async fn turn_for_page(
        &self,
        owner: Uuid,
        page: i64,
    ) -> Result<Option<KeyTurn<Uuid>>, ApiError> {
        if page <= 1 {
            return Ok(None);
        }
        self.turn(owner).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refuses_who_waits_for_8_s_and_nobody_else() {
        let (reads, owner) = (LongReads::new(), Uuid::new_v4());
        let held = reads.turn_for_page(owner, 2).await.expect("a free turn");
        let began = Instant::now();
        assert!(matches!(reads.turn(owner).await, Err(ApiError::Busy("long_reads"))));
        assert_eq!(began.elapsed(), WAIT);
        assert!(reads.turn_for_page(owner, 1).await.expect("no turn is needed").is_none());
        assert!(reads.turn(Uuid::new_v4()).await.is_ok());
        drop(held);
        assert!(reads.turn(owner).await.is_ok());
    }
}
