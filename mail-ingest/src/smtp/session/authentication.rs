//! AUTH, where it is offered.

use super::{Session, SessionState};
use crate::smtp::auth::{self, Awaited};
use crate::smtp::reply::{self, Reply};

impl Session {
    /// The reply to AUTH.
    pub(super) fn start_authentication(&mut self, arguments: &str) -> Reply {
        if self.hello.is_none() {
            reply::HELLO_FIRST
        } else if self.authenticated || self.transaction.is_some() {
            reply::AUTH_OUT_OF_PLACE
        } else {
            self.await_response(auth::start(arguments))
        }
    }

    /// The reply to a line of the client that was awaited.
    pub(super) fn continue_authentication(&mut self, awaited: Awaited, line: &[u8]) -> Reply {
        self.await_response(auth::respond(awaited, line))
    }

    fn await_response(&mut self, next: Result<Option<Awaited>, Reply>) -> Reply {
        self.state = SessionState::Command;
        match next {
            Ok(Some(awaited)) => {
                self.state = SessionState::Authenticating(awaited);
                awaited.challenge()
            }
            Ok(None) => {
                self.authenticated = true;
                reply::AUTHENTICATED
            }
            Err(rejection) => rejection,
        }
    }
}
