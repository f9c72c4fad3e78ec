//! Reads on behalf of one long-poll, from where it stands.

use tempmail_model::limits::LONG_POLL_SCAN_MAX;
use tempmail_store::{MessageRow, ScanRange};

use super::Outcome;
use super::collected::Collected;
use super::filter::Filter;
use super::query::LongPollQuery;
use crate::error::V1Error;
use crate::listener::Listener;
use crate::state::AppState;

/// Rows a statement scans where a filter may drop them.
const FILTER_PAGE: i64 = 500;

/// What a read came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// As many as are waited for are there.
    Enough,
    /// The request has scanned as many rows as it may.
    Spent,
    /// Everything is scanned; more has to come.
    Waiting,
}

/// A long-poll's place in what it listens to.
pub(super) struct Reader {
    listener: Listener,
    filter: Filter,
    collected: Collected,
    /// Whether what was there at first is still to be read, newest first.
    backwards: bool,
    rows_left: i64,
}

impl Reader {
    pub(super) fn new(listener: Listener, query: LongPollQuery, since: Option<i64>) -> Self {
        Self {
            listener,
            filter: query.filter,
            collected: Collected::new(query.count, query.limit, since.unwrap_or(0)),
            backwards: since.is_none(),
            rows_left: LONG_POLL_SCAN_MAX,
        }
    }

    /// What listens for it.
    pub(super) fn listener(&mut self) -> &mut Listener {
        &mut self.listener
    }

    /// Reads on to the end of the stream, or until there is enough.
    ///
    /// # Errors
    /// [`V1Error::NotFound`] where the tenant may not read the scope, or Postgres is away.
    pub(super) async fn read(&mut self, state: &AppState) -> Result<Progress, V1Error> {
        self.forget_gone(state).await?;
        let mut before = i64::MAX;
        loop {
            let backwards = self.backwards;
            let range = if backwards {
                ScanRange::Before(before)
            } else {
                ScanRange::After(self.collected.reached())
            };
            let limit = self.page();
            let page = self.listener.read(state, range, limit).await?;
            if page.moved {
                self.collected.forget();
            }
            let rows = i64::try_from(page.rows.len()).unwrap_or(i64::MAX);
            self.rows_left -= rows;
            let at_end = rows < limit;
            if backwards {
                if before == i64::MAX {
                    self.collected.begin_newest(page.rows.first(), page.position);
                }
                before = page.rows.last().map_or(before, |oldest| oldest.seq);
                self.collect_older(page.rows);
            } else {
                self.collect_next(page.rows);
                if at_end && self.collected.missing() > 0 {
                    self.collected.reach(page.position);
                }
            }
            let done = at_end || self.collected.missing() == 0;
            if backwards && (done || self.rows_left <= 0) {
                self.backwards = false;
                self.collected.turn();
            }
            let progress = self.progress();
            if (done || self.rows_left <= 0) && (page.settled || progress != Progress::Waiting) {
                return Ok(progress);
            }
        }
    }

    /// Takes what arrived since the last read, as [`Listener::recent`] has it; `None` where the
    /// store has to be read.
    ///
    /// # Errors
    /// Postgres is away.
    pub(super) async fn take_recent(
        &mut self,
        state: &AppState,
        first: Option<i64>,
    ) -> Result<Option<Progress>, V1Error> {
        let Some((arrived, up_to)) = self.listener.recent(self.collected.reached(), first) else {
            return Ok(None);
        };
        let met_before = !self.collected.is_empty();
        let rows: Vec<MessageRow> = arrived.iter().filter_map(|arrived| arrived.row.clone()).collect();
        self.collect_next(rows);
        if self.collected.missing() > 0 {
            self.collected.reach(up_to);
        }
        // What only now arrived was read a moment ago.
        if met_before && self.progress() == Progress::Enough {
            self.forget_gone(state).await?;
        }
        Ok(Some(self.progress()))
    }

    /// The answer, from what was read.
    pub(super) fn outcome(self) -> Outcome {
        self.collected.into_outcome()
    }

    fn progress(&self) -> Progress {
        match (self.collected.is_enough(), self.rows_left) {
            (true, _) => Progress::Enough,
            (false, ..=0) => Progress::Spent,
            (false, _) => Progress::Waiting,
        }
    }

    /// What was met a while ago may be deleted by now, or be nobody's to read.
    ///
    /// # Errors
    /// Postgres is away.
    pub(super) async fn forget_gone(&mut self, state: &AppState) -> Result<(), V1Error> {
        if !self.collected.is_empty() {
            let remaining =
                state.store.filter_visible_messages(self.collected.messages(), state.clock.now()).await?;
            self.collected.keep(&remaining);
        }
        Ok(())
    }

    /// Rows to ask for next; at least one.
    fn page(&self) -> i64 {
        let of_use = i64::try_from(self.collected.missing()).unwrap_or(i64::MAX);
        let sifted = self.listener.is_narrower() || !self.filter.is_empty();
        let page = if sifted { FILTER_PAGE } else { of_use };
        page.min(self.rows_left).max(1)
    }

    fn matches(&self, message: &MessageRow) -> bool {
        self.listener.shows(message) && self.filter.matches(message)
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
