//! Reads the messages of one long-poll.

use tempmail_model::limits::LONG_POLL_SCAN_MAX;
use tempmail_store::{MessageRow, ScanRange, ScanRequest};

use super::collected::Collected;
use super::outcome::WaitOutcome;
use super::query::LongPollQuery;
use crate::arrivals::{GenerationNumber, Position};
use crate::http::error::ApiError;
use crate::realtime::filter::Filter;
use crate::realtime::filter_pages::FilterPages;
use crate::realtime::subscription::Subscription;
use crate::state::AppState;

/// The state of a long-poll after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// As many messages as are waited for have arrived.
    Enough,
    /// The request has scanned as many rows as it may.
    Exhausted,
    /// Everything is scanned; more messages are needed.
    Waiting,
}

/// Reads the subscription of a long-poll from a position.
pub(super) struct Reader {
    subscription: Subscription,
    filter: Filter,
    filter_pages: FilterPages,
    collected: Collected,
    /// Whether the messages that existed at first are still being read, newest first.
    backwards: bool,
    rows_left: i64,
    /// The position of the client's cursor; 0 without one.
    start: Position,
    has_cursor: bool,
}

impl Reader {
    pub(super) fn new(
        state: &AppState,
        subscription: Subscription,
        query: LongPollQuery,
        since: Option<Position>,
    ) -> Self {
        let begin = || Position { generation: state.arrivals.generations().current(), seq: 0 };
        let start = since.unwrap_or_else(begin);
        Self {
            subscription,
            filter: query.filter,
            filter_pages: FilterPages::new(),
            collected: Collected::new(query.count, query.limit, start.seq),
            backwards: since.is_none(),
            rows_left: LONG_POLL_SCAN_MAX,
            start,
            has_cursor: since.is_some(),
        }
    }

    /// Whether there is no mail to answer with.
    pub(super) fn is_empty(&self) -> bool {
        self.collected.is_empty()
    }

    /// Whether a generation of the stream began; then nothing is collected yet, and the store has to be read.
    pub(super) fn begin_anew(&mut self, state: &AppState) -> bool {
        let Some(start) = state.arrivals.generations().renew(self.start) else { return false };
        self.start = start;
        self.backwards = !self.has_cursor;
        self.collected.begin_anew(if self.has_cursor { start.seq } else { 0 });
        true
    }

    pub(super) fn subscription(&mut self) -> &mut Subscription {
        &mut self.subscription
    }

    /// Reads to the end of the stream, or until enough messages are collected.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] where the tenant may not read the scope; Postgres is unavailable.
    pub(super) async fn read(&mut self, state: &AppState) -> Result<Progress, ApiError> {
        self.drop_deleted(state).await?;
        let mut before = i64::MAX;
        loop {
            let backwards = self.backwards;
            let range = if backwards {
                ScanRange::Before(before)
            } else {
                ScanRange::After(self.collected.reached())
            };
            let limit = self.page_size();
            let page =
                self.subscription.read(state, self.start.generation, ScanRequest::new(range, limit)).await?;
            if page.owner_changed {
                self.collected.clear();
            }
            let rows = i64::try_from(page.rows.len()).unwrap_or(i64::MAX);
            self.rows_left -= rows;
            let at_end = rows < limit;
            if backwards {
                if before == i64::MAX {
                    self.collected.begin_backward_scan(page.rows.first(), page.position);
                }
                before = page.rows.last().map_or(before, |oldest| oldest.seq);
                self.collect_older(page.rows);
            } else {
                self.collect_next(page.rows);
                if at_end && self.collected.missing() > 0 {
                    self.collected.advance_to(page.position);
                }
            }
            let done = at_end || self.collected.missing() == 0;
            if backwards && (done || self.rows_left <= 0) {
                self.backwards = false;
                self.collected.end_backward_scan();
            }
            let progress = self.progress();
            if (done || self.rows_left <= 0) && (page.subscribed || progress != Progress::Waiting) {
                return Ok(progress);
            }
        }
    }

    /// Collects what arrived since the last read from [`Subscription::recent`]; `None` where the store has
    /// to be read.
    ///
    /// # Errors
    /// Postgres is unavailable.
    pub(super) async fn read_recent(
        &mut self,
        state: &AppState,
        first: Option<i64>,
    ) -> Result<Option<Progress>, ApiError> {
        let Some((messages, up_to)) = self.subscription.recent(self.collected.reached(), first) else {
            return Ok(None);
        };
        let had_messages = !self.collected.is_empty();
        let rows: Vec<MessageRow> = messages.iter().filter_map(|message| message.row.clone()).collect();
        self.collect_next(rows);
        if self.collected.missing() > 0 {
            self.collected.advance_to(up_to);
        }
        // Messages that arrived just now need no check.
        if had_messages && self.progress() == Progress::Enough {
            self.drop_deleted(state).await?;
        }
        Ok(Some(self.progress()))
    }

    /// The outcome, from what was collected, and the generation of its position.
    pub(super) fn outcome(self) -> (WaitOutcome, GenerationNumber) {
        (self.collected.into_outcome(), self.start.generation)
    }

    fn progress(&self) -> Progress {
        match (self.collected.is_enough(), self.rows_left) {
            (true, _) => Progress::Enough,
            (false, ..=0) => Progress::Exhausted,
            (false, _) => Progress::Waiting,
        }
    }

    /// Drops collected messages that were deleted meanwhile.
    ///
    /// # Errors
    /// Postgres is unavailable.
    pub(super) async fn drop_deleted(&mut self, state: &AppState) -> Result<(), ApiError> {
        if !self.collected.is_empty() {
            let (store, now) = (&state.stream_store, state.clock.now());
            let remaining = store.filter_visible_messages(self.collected.messages(), now).await?;
            self.collected.retain(&remaining);
        }
        Ok(())
    }

    /// Rows to read next; at least one.
    fn page_size(&mut self) -> i64 {
        let missing = i64::try_from(self.collected.missing()).unwrap_or(i64::MAX);
        let filtered = self.subscription.reads_beyond_scope() || !self.filter.is_empty();
        let page = if filtered { self.filter_pages.next_size() } else { missing };
        page.min(self.rows_left).max(1)
    }

    fn matches(&self, message: &MessageRow) -> bool {
        self.subscription.covers(message) && self.filter.matches(message)
    }

    fn collect_older(&mut self, rows: Vec<MessageRow>) {
        for message in rows {
            if self.collected.missing() > 0 && self.matches(&message) {
                self.collected.push_older(message);
            }
        }
    }

    fn collect_next(&mut self, rows: Vec<MessageRow>) {
        for message in rows {
            if self.collected.missing() == 0 {
                return;
            }
            let matches = self.matches(&message);
            self.collected.push_next(message, matches);
        }
    }
}
