//! Reads an inbox on behalf of one long-poll, from where it stands.

use std::sync::Arc;

use tempmail_model::address::RecipientAddress;
use tempmail_model::limits::SCAN_MAX;
use tempmail_store::{InboxAccess, InboxQuestion, InboxScan, ScanRange};
use uuid::Uuid;

use super::Outcome;
use super::collected::Collected;
use super::filter::Filter;
use super::query::LongPollQuery;
use crate::error::V1Error;
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

/// A long-poll's place in an inbox.
pub(super) struct Reader {
    tenant: Uuid,
    address: Arc<RecipientAddress>,
    filter: Filter,
    collected: Collected,
    /// Whether what was there at first is still to be read, newest first.
    backwards: bool,
    access: Option<InboxAccess>,
    rows_left: i64,
}

impl Reader {
    pub(super) fn new(
        tenant: Uuid,
        address: Arc<RecipientAddress>,
        query: LongPollQuery,
        since: Option<i64>,
    ) -> Self {
        Self {
            tenant,
            address,
            filter: query.filter,
            collected: Collected::new(query.count, query.limit, since.unwrap_or(0)),
            backwards: since.is_none(),
            access: None,
            rows_left: SCAN_MAX,
        }
    }

    /// Reads on to the end of the inbox, or until there is enough; also tells whose mail it
    /// is now.
    ///
    /// # Errors
    /// [`V1Error::NotFound`] where the tenant may not read the address, or Postgres is away.
    pub(super) async fn read(&mut self, state: &AppState) -> Result<(Progress, InboxAccess), V1Error> {
        if !self.collected.is_empty() {
            let remaining = state.store.list_remaining(self.collected.messages(), state.clock.now()).await?;
            self.collected.keep(&remaining);
        }
        let mut before = i64::MAX;
        loop {
            let backwards = self.backwards;
            let range = if backwards {
                ScanRange::Before(before)
            } else {
                ScanRange::After(self.collected.reached())
            };
            let page = self.page();
            let scan = self.scan(state, range, page).await?;
            let access = scan.access;
            let rows = i64::try_from(scan.rows.len()).unwrap_or(i64::MAX);
            self.rows_left -= rows;
            let at_end = rows < page;
            if backwards {
                if before == i64::MAX {
                    self.collected.begin_newest(scan.rows.first(), scan.position);
                }
                before = scan.rows.last().map_or(before, |oldest| oldest.seq);
                self.collect_older(scan);
            } else {
                self.collect_next(scan, at_end);
            }
            let done = at_end || self.collected.missing() == 0;
            if backwards && (done || self.rows_left <= 0) {
                self.backwards = false;
                self.collected.turn();
            }
            if done || self.rows_left <= 0 {
                let progress = match (self.collected.is_enough(), self.rows_left) {
                    (true, _) => Progress::Enough,
                    (false, ..=0) => Progress::Spent,
                    (false, _) => Progress::Waiting,
                };
                return Ok((progress, access));
            }
        }
    }

    /// The answer, from what was read.
    pub(super) fn outcome(self) -> Outcome {
        self.collected.into_outcome()
    }

    /// Rows to ask for next; at least one.
    fn page(&self) -> i64 {
        let of_use = i64::try_from(self.collected.missing()).unwrap_or(i64::MAX);
        let page = if self.filter.is_empty() { of_use } else { FILTER_PAGE };
        page.min(self.rows_left).max(1)
    }

    async fn scan(&mut self, state: &AppState, range: ScanRange, page: i64) -> Result<InboxScan, V1Error> {
        let question = InboxQuestion {
            tenant: self.tenant,
            address: &self.address,
            reserved: state.reserved.of(self.address.base_local_part()),
        };
        let scan = state.store.scan_inbox(question, range, page, state.clock.now()).await?;
        let scan = scan.ok_or(V1Error::NotFound)?;
        if self.access.replace(scan.access).is_some_and(|former| former != scan.access) {
            self.collected.forget();
        }
        Ok(scan)
    }

    fn collect_older(&mut self, scan: InboxScan) {
        for message in scan.rows {
            if self.collected.missing() > 0 && self.filter.matches(&message) {
                self.collected.push_older(message);
            }
        }
    }

    fn collect_next(&mut self, scan: InboxScan, at_end: bool) {
        for message in scan.rows {
            if self.collected.missing() == 0 {
                return;
            }
            let matches = self.filter.matches(&message);
            self.collected.push_next(message, matches);
        }
        if at_end {
            self.collected.reach(scan.position);
        }
    }
}
