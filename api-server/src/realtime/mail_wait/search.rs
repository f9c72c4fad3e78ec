//! Looks for the one mail of a wait.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use tempmail_model::limits::{LONG_POLL_SCAN_MAX, MAIL_WAIT_READ_BYTES, MAIL_WAIT_READ_MAX};
use tempmail_store::MessageRow;
use tokio::time::Instant;
use uuid::Uuid;

use super::MailWaitQuery;
use crate::http::client::Client;
use crate::http::error::ApiError;
use crate::message::INITIAL_CHUNK;
use crate::realtime::filter::FilterPages;
use crate::realtime::follower::{Batch, Follower};
use crate::realtime::scope::ScopeSource;
use crate::state::AppState;

/// Rows of a page where each may have to be read: they are in memory meanwhile.
const CONTENT_PAGE: i64 = 50;
/// How long a search may go on beyond the time that the client waits.
const SEARCH_TIME: Duration = Duration::from_secs(30);

/// The message that was waited for.
pub(super) struct FoundMessage {
    pub(super) id: Uuid,
    pub(super) response: Box<Response>,
}

/// What a look at messages found.
pub(super) enum Examined {
    /// The one.
    Found(FoundMessage),
    /// Other ones.
    Other,
    /// The request has looked at as much as it may, or the server drains.
    Exhausted,
}

/// Looks at the messages of a follower until one matches.
pub(super) struct Search {
    client: Client,
    query: Box<MailWaitQuery>,
    /// Rows that may be scanned.
    rows_left: i64,
    filter_pages: FilterPages,
    /// Messages whose contents may be looked at, and bytes of them.
    reads_left: u32,
    bytes_left: u64,
    /// When the search ends in any case.
    ends_at: Instant,
}

impl Search {
    pub(super) fn new(client: Client, query: Box<MailWaitQuery>) -> Self {
        Self {
            client,
            rows_left: LONG_POLL_SCAN_MAX,
            filter_pages: FilterPages::new(),
            reads_left: MAIL_WAIT_READ_MAX,
            bytes_left: MAIL_WAIT_READ_BYTES,
            ends_at: Instant::now() + query.timeout + SEARCH_TIME,
            query,
        }
    }

    /// Rows to read next; at least one.
    pub(super) fn page_size(&mut self, source: &ScopeSource) -> i64 {
        let filtered = source.reads_beyond_scope() || !self.query.filter.is_empty();
        let page = match (filtered, self.query.wanted.requires_nothing()) {
            (true, _) => self.filter_pages.next_size(),
            (false, false) => CONTENT_PAGE,
            (false, true) => 1,
        };
        page.min(self.rows_left).max(1)
    }

    /// Looks at messages in their order. Where the request may look at no more of them, the follower's position is the last
    /// one that was looked at; no cursor leads back to what is left of older messages.
    ///
    /// # Errors
    /// The caller may no longer read; there is no memory to read a message; Postgres is unavailable.
    pub(super) async fn examine(
        &mut self,
        state: &AppState,
        follower: &mut Follower<ScopeSource>,
        batch: &Batch,
    ) -> Result<Examined, ApiError> {
        self.rows_left -= batch.rows_read;
        let mut examined = batch.after;
        for row in batch.messages() {
            match self.examine_message(state, follower, row, batch.older).await? {
                Examined::Other => examined = row.seq,
                Examined::Exhausted if !batch.older => {
                    follower.continue_after(examined);
                    return Ok(Examined::Exhausted);
                }
                ended => return Ok(ended),
            }
        }
        let is_over = self.rows_left <= 0 || self.is_over(state, batch.older);
        Ok(if is_over { Examined::Exhausted } else { Examined::Other })
    }

    /// Whether the search has to end, however much of it is left. No cursor leads back to what is left of older messages, so a
    /// drain does not end the search of those.
    fn is_over(&self, state: &AppState, older: bool) -> bool {
        Instant::now() >= self.ends_at || (!older && state.shutdown.drain.is_cancelled())
    }

    /// Whether what costs little matches.
    fn may_match(&self, row: &MessageRow) -> bool {
        self.query.after.is_none_or(|after| row.created_at() > after) && self.query.filter.matches(row)
    }

    /// Reads a message that may match, and judges whether the caller may still have it.
    async fn examine_message(
        &mut self,
        state: &AppState,
        follower: &mut Follower<ScopeSource>,
        row: &MessageRow,
        older: bool,
    ) -> Result<Examined, ApiError> {
        if !self.may_match(row) {
            return Ok(Examined::Other);
        }
        let tenant = follower.source().tenant();
        let turn = state.gates.mail_reads.turn_until(self.client.turn_key(Some(tenant)), self.ends_at).await;
        if turn.is_err() || self.reads_left == 0 || self.bytes_left == 0 || self.is_over(state, older) {
            return Ok(Examined::Exhausted);
        }
        self.reads_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(u64::try_from(row.size).unwrap_or(0));
        let (store, now) = (&state.stream_store, state.clock.now());
        let found =
            store.find_readable_message(tenant, None, row.id, &state.reserved, now, INITIAL_CHUNK).await?;
        let Some(message) = found else { return Ok(Examined::Other) };
        let (wanted, next_since) = (Arc::clone(&self.query.wanted), follower.cursor_after(state, row.seq));
        let answer = state.messages.found_email(message, self.client, wanted, next_since).await;
        drop(turn);
        let response = match answer {
            Ok(Some(response)) => Box::new(response),
            // Deleted meanwhile, or unreadable, which is logged: it holds up no wait.
            Ok(None) | Err(ApiError::NotFound | ApiError::EmailExpired | ApiError::Internal) => {
                return Ok(Examined::Other);
            }
            Err(error) => return Err(error),
        };
        // Reading takes time: the message may be deleted by now, or the right to it lost.
        let is_readable = async {
            let now = state.clock.now();
            let found = store.find_readable_message(tenant, None, row.id, &state.reserved, now, 0).await?;
            Ok(found.is_some())
        };
        Ok(if follower.judge_anew(state, is_readable).await? {
            Examined::Found(FoundMessage { id: row.id, response })
        } else {
            Examined::Other
        })
    }
}
