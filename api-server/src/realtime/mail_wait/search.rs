//! Looks for the one mail of a wait.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use tempmail_model::limits::{LONG_POLL_SCAN_MAX, MAIL_WAIT_READ_BYTES, MAIL_WAIT_READ_MAX};
use tempmail_store::{MessageRow, ScanRange, ScanRequest};
use tokio::time::Instant;
use uuid::Uuid;

use super::query::MailWaitQuery;
use crate::arrivals::{Position, STALE_AFTER};
use crate::http::client::Client;
use crate::http::error::ApiError;
use crate::message::INITIAL_CHUNK;
use crate::realtime::filter_pages::FilterPages;
use crate::realtime::subscription::Subscription;
use crate::state::AppState;

/// Rows of a page where each may have to be read: they are in memory meanwhile.
const CONTENT_PAGE: i64 = 50;
/// How long a search may go on beyond the time that the client waits.
const SEARCH_TIME: Duration = Duration::from_secs(30);

/// The state of a wait after a read.
pub(super) enum Progress {
    /// A message matches.
    Found(FoundMessage),
    /// The request has looked at as much as it may, or the server drains.
    Exhausted,
    /// Everything is looked at.
    Waiting,
}

/// The message that was waited for.
pub(super) struct FoundMessage {
    pub(super) id: Uuid,
    pub(super) response: Box<Response>,
}

/// Whether a message is the one.
enum Examined {
    Found(FoundMessage),
    Other,
    /// It was not looked at.
    Exhausted,
}

/// Reads the subscription of a wait until a message matches.
pub(super) struct Search {
    subscription: Subscription,
    client: Client,
    query: Box<MailWaitQuery>,
    /// The position of the client's cursor; 0 without one.
    start: Position,
    /// Everything up to here was looked at.
    reached: i64,
    /// Whether the messages that existed at first are still looked at, newest first.
    backwards: bool,
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
    pub(super) fn new(
        state: &AppState,
        client: Client,
        subscription: Subscription,
        query: Box<MailWaitQuery>,
    ) -> Self {
        let begin = || Position { generation: state.arrivals.generations().current(), seq: 0 };
        let start = query.since.unwrap_or_else(begin);
        Self {
            subscription,
            client,
            start,
            reached: start.seq,
            backwards: query.has_no_start(),
            rows_left: LONG_POLL_SCAN_MAX,
            filter_pages: FilterPages::new(),
            reads_left: MAIL_WAIT_READ_MAX,
            bytes_left: MAIL_WAIT_READ_BYTES,
            ends_at: Instant::now() + query.timeout + SEARCH_TIME,
            query,
        }
    }

    pub(super) fn subscription(&mut self) -> &mut Subscription {
        &mut self.subscription
    }

    /// The cursor to continue from.
    pub(super) fn cursor(&self, state: &AppState) -> String {
        self.cursor_of(state, self.reached)
    }

    /// Whether a generation of the stream began; then the store has to be read.
    pub(super) fn begin_anew(&mut self, state: &AppState) -> bool {
        let Some(start) = state.arrivals.generations().renew(self.start) else { return false };
        self.start = start;
        self.reached = start.seq;
        self.backwards = self.query.has_no_start();
        true
    }

    /// Reads to the end of the stream, or until a message matches.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] where the tenant may not read the scope; its token has ended; there is no memory to read
    /// a message; Postgres is unavailable.
    pub(super) async fn read(&mut self, state: &AppState) -> Result<Progress, ApiError> {
        let mut before = i64::MAX;
        loop {
            let backwards = self.backwards;
            let range = if backwards { ScanRange::Before(before) } else { ScanRange::After(self.reached) };
            let scan =
                ScanRequest { accepted_since: self.query.after, ..ScanRequest::new(range, self.page_size()) };
            let page = self.subscription.read(state, self.start.generation, scan).await?;
            let rows = i64::try_from(page.rows.len()).unwrap_or(i64::MAX);
            self.rows_left -= rows;
            let (is_first, at_end) = (before == i64::MAX, rows < scan.limit);
            if backwards && page.owner_changed && !is_first {
                before = i64::MAX;
                continue;
            }
            if backwards && is_first {
                self.reached = page.rows.first().map_or(0, |newest| newest.seq).max(page.position);
            }
            for row in page.rows {
                match self.examine(state, &row).await? {
                    Examined::Found(found) => return Ok(Progress::Found(found)),
                    Examined::Exhausted => return Ok(Progress::Exhausted),
                    Examined::Other if backwards => before = row.seq,
                    Examined::Other => self.reached = row.seq,
                }
            }
            if self.rows_left <= 0 || self.is_over(state) {
                return Ok(Progress::Exhausted);
            }
            if !at_end {
                continue;
            }
            self.backwards = false;
            if !backwards {
                self.reached = self.reached.max(page.position);
            }
            // What arrived while earlier pages were read was perhaps not notified.
            if page.subscribed && (is_first || !backwards) {
                return Ok(Progress::Waiting);
            }
        }
    }

    /// Looks at what arrived since the last read, from [`Subscription::recent`]; `None` where the store has to be read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) async fn read_recent(
        &mut self,
        state: &AppState,
        first: Option<i64>,
    ) -> Result<Option<Progress>, ApiError> {
        let Some((messages, up_to)) = self.subscription.recent(self.reached, first) else { return Ok(None) };
        for row in messages.iter().filter_map(|message| message.row.as_ref()) {
            match self.examine(state, row).await? {
                Examined::Found(found) => return Ok(Some(Progress::Found(found))),
                Examined::Exhausted => return Ok(Some(Progress::Exhausted)),
                Examined::Other => self.reached = row.seq,
            }
        }
        self.reached = self.reached.max(up_to);
        Ok(Some(Progress::Waiting))
    }

    /// Rows to read next; at least one.
    fn page_size(&mut self) -> i64 {
        let filtered = self.subscription.reads_beyond_scope() || !self.query.filter.is_empty();
        let page = match (filtered, self.query.wanted.requires_nothing()) {
            (true, _) => self.filter_pages.next_size(),
            (false, false) => CONTENT_PAGE,
            (false, true) => 1,
        };
        page.min(self.rows_left).max(1)
    }

    /// Whether the search has to end, however much of it is left. A cursor does not lead back to what a search
    /// backwards leaves, so a drain does not end that.
    fn is_over(&self, state: &AppState) -> bool {
        Instant::now() >= self.ends_at || (!self.backwards && state.shutdown.drain.is_cancelled())
    }

    /// Whether what costs little matches.
    fn may_match(&self, row: &MessageRow) -> bool {
        self.subscription.covers(row)
            && self.query.after.is_none_or(|after| row.created_at() > after)
            && self.query.filter.matches(row)
    }

    /// Reads a message that may match, and judges whether the caller may still have it.
    async fn examine(&mut self, state: &AppState, row: &MessageRow) -> Result<Examined, ApiError> {
        if !self.may_match(row) {
            return Ok(Examined::Other);
        }
        let key = self.client.turn_key(Some(self.subscription.tenant()));
        let turn = state.gates.mail_reads.turn_until(key, self.ends_at).await;
        if turn.is_err() || self.reads_left == 0 || self.bytes_left == 0 || self.is_over(state) {
            return Ok(Examined::Exhausted);
        }
        self.reads_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(u64::try_from(row.size).unwrap_or(0));
        let (tenant, now) = (self.subscription.tenant(), state.clock.now());
        let store = &state.stream_store;
        let found =
            store.find_readable_message(tenant, None, row.id, &state.reserved, now, INITIAL_CHUNK).await?;
        let Some(message) = found else { return Ok(Examined::Other) };
        let (wanted, next_since) = (Arc::clone(&self.query.wanted), self.cursor_of(state, row.seq));
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
        if self.is_still_readable(state, row.id).await? {
            Ok(Examined::Found(FoundMessage { id: row.id, response }))
        } else {
            Ok(Examined::Other)
        }
    }

    /// Whether the caller may have a message now.
    async fn is_still_readable(&mut self, state: &AppState, message: Uuid) -> Result<bool, ApiError> {
        let began = Instant::now();
        self.subscription.recheck(state).await?;
        let (tenant, now) = (self.subscription.tenant(), state.clock.now());
        let found =
            state.stream_store.find_readable_message(tenant, None, message, &state.reserved, now, 0).await?;
        if began.elapsed() > STALE_AFTER {
            // The rights that were judged first may have ended meanwhile.
            return Err(ApiError::Unavailable);
        }
        Ok(found.is_some())
    }

    fn cursor_of(&self, state: &AppState, position: i64) -> String {
        let generation = state.arrivals.generations().id(self.start.generation);
        state.cursors.seal(self.subscription.tenant(), generation, position)
    }
}
