//! What a proxy was told, and what it saw.

use std::fmt;

use tokio::sync::watch;

use super::fault::Fault;
use super::request::ApiRequest;
use crate::wait::within_deadline;

/// When a write stops the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before it is forwarded.
    Before,
    /// After the API server has answered it.
    After,
}

/// Whether the write that was waited for has come.
#[derive(Debug, Clone)]
pub struct Reached(watch::Receiver<bool>);

impl Reached {
    pub(super) fn new() -> (watch::Sender<bool>, Self) {
        let (tell, told) = watch::channel(false);
        (tell, Self(told))
    }

    /// Whether it came, and the call has returned.
    pub fn has_come(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns then.
    ///
    /// # Panics
    /// It never does.
    pub async fn comes(&mut self) {
        let came = within_deadline("the write", self.0.wait_for(|came| *came)).await;
        came.expect("the proxy is there, and the call did not panic");
    }
}

/// What happens to a request.
pub(super) enum Act {
    Fail(Fault),
    Stop { when: When, call: Box<dyn FnOnce() + Send>, tell: watch::Sender<bool> },
}

/// Which requests a test means.
pub(super) type Picks = Box<dyn Fn(&ApiRequest) -> bool + Send>;

/// Which request it happens to.
pub(super) enum Pick {
    /// The nth of the writes that count and are picked.
    Write {
        nth: usize,
        picks: Picks,
    },
    If(Picks),
}

/// Everything that changes while a proxy is there.
#[derive(Default)]
pub(super) struct Script {
    pub(super) requests: Vec<ApiRequest>,
    pub(super) counts_all: bool,
    pub(super) holds: Option<Picks>,
    pub(super) stands_still: bool,
    acts: Vec<(Pick, Act)>,
}

impl Script {
    pub(super) fn will(&mut self, pick: Pick, act: Act) {
        self.acts.push((pick, act));
    }

    pub(super) fn is_counted(&self, request: &ApiRequest) -> bool {
        if self.counts_all { request.is_write() } else { request.is_lasting_write() }
    }

    /// Whether a request has to wait.
    pub(super) fn keeps(&self, request: &ApiRequest) -> bool {
        self.stands_still || self.holds.as_ref().is_some_and(|picks| picks(request))
    }

    /// What happens to a request: the first act that was told for it, once.
    pub(super) fn act(&mut self, request: &ApiRequest) -> Option<Act> {
        let is_counted = self.is_counted(request);
        let position = self.acts.iter_mut().position(|(pick, _)| match pick {
            Pick::Write { nth, picks } => {
                *nth -= usize::from(is_counted && picks(request));
                *nth == 0
            }
            Pick::If(picks) => picks(request),
        });
        position.map(|position| self.acts.remove(position).1)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("requests", &self.requests).finish_non_exhaustive()
    }
}
