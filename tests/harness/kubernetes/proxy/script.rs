//! What a test schedules for a proxy, and what the proxy recorded.

use std::fmt;

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::http::response::Builder;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::request::ApiRequest;
use crate::wait::within_deadline;

/// When a write stops the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopPoint {
    /// Before the write is forwarded.
    BeforeWrite,
    /// After the API server has answered it.
    AfterWrite,
}

/// Whether the write at which the program is stopped was reached.
#[derive(Debug, Clone)]
pub struct StopReached(watch::Receiver<bool>);

impl StopReached {
    pub(super) fn new() -> (watch::Sender<bool>, Self) {
        let (done, reached) = watch::channel(false);
        (done, Self(reached))
    }

    /// Whether the write was reached, and the call has returned.
    pub fn is_reached(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the write was reached, and the call has returned.
    ///
    /// # Panics
    /// It never is.
    pub async fn wait(&mut self) {
        let reached = within_deadline("the write", self.0.wait_for(|reached| *reached)).await;
        reached.expect("the proxy runs, and the call did not panic");
    }
}

/// What happens to a request.
pub(super) enum Action {
    Fail(ApiFault),
    Stop { point: StopPoint, call: Box<dyn FnOnce() + Send>, done: watch::Sender<bool> },
}

/// Which requests a test means.
pub(super) type Matcher = Box<dyn Fn(&ApiRequest) -> bool + Send>;

/// Which request an action happens to.
pub(super) enum Trigger {
    /// The nth of the writes that count and match.
    Write { nth: usize, matches: Matcher },
    /// The next that matches.
    Request(Matcher),
}

/// What changes while a proxy runs.
#[derive(Default)]
pub(super) struct Script {
    pub(super) requests: Vec<ApiRequest>,
    pub(super) counts_all: bool,
    pub(super) held: Option<Matcher>,
    /// Whether no request passes: the program is being stopped.
    pub(super) is_paused: bool,
    scheduled: Vec<(Trigger, Action)>,
}

impl Script {
    pub(super) fn schedule(&mut self, trigger: Trigger, action: Action) {
        self.scheduled.push((trigger, action));
    }

    pub(super) fn is_counted(&self, request: &ApiRequest) -> bool {
        if self.counts_all { request.is_write() } else { request.is_persistent_write() }
    }

    /// Whether a request has to wait.
    pub(super) fn is_held(&self, request: &ApiRequest) -> bool {
        self.is_paused || self.is_held_by_test(request)
    }

    /// Whether the test holds a request.
    pub(super) fn is_held_by_test(&self, request: &ApiRequest) -> bool {
        self.held.as_ref().is_some_and(|matches| matches(request))
    }

    /// Removes and returns the first action whose trigger is this request.
    pub(super) fn take_action(&mut self, request: &ApiRequest) -> Option<Action> {
        let is_counted = self.is_counted(request);
        let position = self.scheduled.iter_mut().position(|(trigger, _)| match trigger {
            Trigger::Write { nth, matches } => {
                *nth -= usize::from(is_counted && matches(request));
                *nth == 0
            }
            Trigger::Request(matches) => matches(request),
        });
        position.map(|position| self.scheduled.remove(position).1)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("requests", &self.requests).finish_non_exhaustive()
    }
}

/// An error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiFault {
    /// 409 `Conflict`: the resource version of the request is not the newest.
    Conflict,
    /// 409 `AlreadyExists`.
    AlreadyExists,
    /// 410 `Expired`: the resource version of a list or a watch is too old.
    Expired,
    /// 422 `Invalid`.
    Invalid,
    /// 429 `TooManyRequests`, with `Retry-After` in seconds.
    TooManyRequests(u32),
    /// 500 `InternalError`.
    Internal,
}

impl ApiFault {
    /// Its status.
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Conflict | Self::AlreadyExists => StatusCode::CONFLICT,
            Self::Expired => StatusCode::GONE,
            Self::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyRequests(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::AlreadyExists => "AlreadyExists",
            Self::Expired => "Expired",
            Self::Invalid => "Invalid",
            Self::TooManyRequests(_) => "TooManyRequests",
            Self::Internal => "InternalError",
        }
    }

    /// Head and body of the response.
    pub(super) fn response(self) -> (Builder, Value) {
        let mut head =
            hyper::Response::builder().status(self.status()).header(CONTENT_TYPE, "application/json");
        let mut status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": "scheduled by a test",
            "reason": self.reason(),
            "code": self.status().as_u16(),
        });
        if let Self::TooManyRequests(seconds) = self {
            head = head.header(RETRY_AFTER, seconds);
            status["details"] = json!({ "retryAfterSeconds": seconds });
        }
        (head, status)
    }
}
