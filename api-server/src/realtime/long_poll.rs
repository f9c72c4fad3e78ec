//! The 25 s hold of `/v1/inbox`, `/v1/domain` and `/v1/me`: returns the mail that there is, or waits for
//! new mail. A client may shorten it by `Prefer: wait=N`.
//!
//! To miss no mail, the order is fixed: the caller acquires the permits, the follower subscribes, it reads the store from the
//! cursor, and only then the request waits.

mod collected;
mod query;

use tempmail_model::limits::LONG_POLL_SCAN_MAX;
use tempmail_store::MessageRow;
use tokio::time::Instant;

pub(crate) use query::LongPollQuery;

use self::collected::{Collected, CollectedMail};
use super::answer::{AnswerMetrics, WaitMode};
use super::filter::{Filter, FilterPages};
use super::follower::{Batch, Followed, Follower};
use super::scope::ScopeSource;
use crate::http::error::{ApiError, code};
use crate::openapi::Operation;
use crate::state::AppState;

/// How a long-poll ends without an error.
#[derive(Debug)]
pub(crate) struct WaitOutcome {
    /// Newest first; empty where the time is up, the server drains, or the request has read as much as it may.
    pub(crate) messages: Vec<MessageRow>,
    /// Where to continue.
    pub(crate) cursor: String,
}

/// Describes a long-poll: its parameters, and its answers except for the mail.
pub(crate) fn described(operation: Operation) -> Operation {
    query::described(operation)
        .empty(204, "No mail within 25 s, or as long as was preferred: send the request again.")
        .header("X-Next-Since", "The cursor to continue from.")
        .fails(&[code::INVALID_REQUEST, code::TOKEN_BUSY])
}

/// Waits for mail, at most as long as the query says.
///
/// # Errors
/// The caller may not read the scope, or no longer; its token has ended; Postgres is unavailable.
pub(crate) async fn wait(
    state: &AppState,
    mut follower: Follower<ScopeSource>,
    query: LongPollQuery,
) -> Result<WaitOutcome, ApiError> {
    let answers = AnswerMetrics::start(WaitMode::LongPoll, state);
    follower.schedule(Instant::now() + query.hold);
    let mut collector = Collector::new(query);
    let mut notified = None;
    while !collector.is_done() {
        let most = collector.page_size(follower.source());
        match follower.next(state, most).await {
            Followed::Batch(batch) => {
                notified = batch.timer;
                // Boxed, as reading: it may ask the store.
                Box::pin(collector.collect(state, &mut follower, batch)).await?;
            }
            Followed::Due | Followed::Drain => {
                Box::pin(collector.drop_deleted(state, &mut follower)).await?;
                break;
            }
            Followed::Lost(error) => return Err(error),
        }
    }
    let Some(CollectedMail { messages, position }) = collector.collected.into_mail() else {
        return Ok(WaitOutcome { messages: Vec::new(), cursor: follower.cursor(state) });
    };
    if let Some(timer) = notified {
        answers.record(state, timer, messages.iter().map(|message| message.id));
    }
    Ok(WaitOutcome { messages, cursor: follower.cursor_after(state, position) })
}

/// Collects the messages of one long-poll.
struct Collector {
    filter: Filter,
    filter_pages: FilterPages,
    collected: Collected,
    /// Rows of the store that may still be read.
    rows_left: i64,
    /// Whether there is nothing more to read now.
    at_end: bool,
}

impl Collector {
    fn new(query: LongPollQuery) -> Self {
        Self {
            filter: query.filter,
            filter_pages: FilterPages::new(),
            collected: Collected::new(query.count, query.limit),
            rows_left: LONG_POLL_SCAN_MAX,
            at_end: false,
        }
    }

    /// Whether as many messages as are waited for have arrived, and no more fit or there are none; or the request has read
    /// as many rows as it may.
    fn is_done(&self) -> bool {
        let is_full = self.collected.missing() == 0;
        self.rows_left <= 0 || is_full || (self.at_end && self.collected.is_enough())
    }

    /// Rows to read next; at least one.
    fn page_size(&mut self, source: &ScopeSource) -> i64 {
        let missing = i64::try_from(self.collected.missing()).unwrap_or(i64::MAX);
        let filtered = source.reads_beyond_scope() || !self.filter.is_empty();
        let page = if filtered { self.filter_pages.next_size() } else { missing };
        page.min(self.rows_left).max(1)
    }

    async fn collect(
        &mut self,
        state: &AppState,
        follower: &mut Follower<ScopeSource>,
        batch: Batch,
    ) -> Result<(), ApiError> {
        if batch.anew {
            self.collected.begin_anew();
        }
        self.rows_left -= batch.rows_read;
        self.at_end = batch.at_end;
        let waited_with_mail = batch.timer.is_some() && !self.collected.is_empty();
        let matches = batch.messages().filter(|message| self.filter.matches(message));
        if batch.older {
            self.collected.push_older(matches, batch.highest);
        } else if let Some(last) = self.collected.push_next(matches, batch.highest) {
            follower.continue_after(last);
        }
        // Messages that arrived just now need no check.
        if waited_with_mail && self.is_done() {
            self.drop_deleted(state, follower).await?;
        }
        Ok(())
    }

    /// Drops messages that were deleted since they were collected, or that the caller may no longer read.
    async fn drop_deleted(
        &mut self,
        state: &AppState,
        follower: &mut Follower<ScopeSource>,
    ) -> Result<(), ApiError> {
        if !self.collected.is_empty() {
            let remaining = follower.confirm(state, self.collected.messages()).await?;
            self.collected.retain(&remaining);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(
        _: fn(&'static AppState, Follower<ScopeSource>, LongPollQuery) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn bounds_the_size_of_an_idle_wait() {
        let size = size_of_future(wait);
        assert!(size <= 1600, "{size}");
    }
}
