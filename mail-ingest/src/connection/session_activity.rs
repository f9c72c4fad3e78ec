//! What a session reports to the limits of connections, and what ends it for another session.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// When a session last made progress: it began, a recipient was accepted, message data arrived, or mail was stored.
/// Other commands, such as NOOP, are none.
#[derive(Debug)]
pub(crate) struct SessionActivity {
    /// `None` while the client waits for the outcome of a delivery.
    progress: Mutex<Option<Instant>>,
    ended: CancellationToken,
}

impl SessionActivity {
    /// Records progress, which also ends a delivery.
    pub(crate) fn record_progress(&self) {
        self.set(Some(Instant::now()));
    }

    /// The client waits for the outcome of a delivery from now on, and the session is not ended for others.
    pub(crate) fn begin_delivery(&self) {
        self.set(None);
    }

    /// The time since the last progress; `None` during a delivery.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let progress = *self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.map(|progress| progress.elapsed())
    }

    /// Ends the session for another one.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// Cancelled when the session is ended for another one.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    fn set(&self, progress: Option<Instant>) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }
}

impl Default for SessionActivity {
    fn default() -> Self {
        Self { progress: Mutex::new(Some(Instant::now())), ended: CancellationToken::new() }
    }
}
