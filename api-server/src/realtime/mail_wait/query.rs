//! What a mail wait waits for.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::arrivals::Position;
use crate::message::WantedEmail;
use crate::realtime::filter::Filter;

/// What is waited for, and how long.
#[derive(Debug)]
pub(crate) struct MailWaitQuery {
    /// Only mail after this position.
    pub(crate) since: Option<Position>,
    /// Only mail that was accepted after this time.
    pub(crate) after: Option<Timestamp>,
    /// What is compared first, since it costs little.
    pub(crate) filter: Filter,
    /// What the contents must have.
    pub(crate) wanted: Arc<WantedEmail>,
    /// How long the request waits at most; zero: it does not.
    pub(crate) timeout: Duration,
}

impl MailWaitQuery {
    /// Whether the newest match is wanted, not the oldest one after a start.
    pub(super) fn has_no_start(&self) -> bool {
        self.since.is_none() && self.after.is_none()
    }
}
