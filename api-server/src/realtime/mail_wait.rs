//! The wait of `POST /v1/wait`: for one mail that matches, with what the caller may do with it.
//!
//! With a start it is the oldest match after it, so that the same request has the same answer. Without one it is the
//! newest match that there is, or else the first that comes. As for a long-poll, the caller acquires the permits, the
//! follower subscribes, the store is read, and only then the request waits.

mod search;

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use jiff::Timestamp;
use tokio::time::Instant;

use self::search::{Examined, FoundMessage, Search};
use super::answer::{AnswerMetrics, WaitMode};
use super::filter::Filter;
use super::follower::{Followed, Follower, Patience, Start};
use super::scope::{self, Scope, ScopeSource};
use crate::arrivals::Position;
use crate::auth::SubscriberCredential;
use crate::http::client::Client;
use crate::http::error::ApiError;
use crate::message::WantedEmail;
use crate::state::AppState;

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

/// How a mail wait ends without an error.
#[derive(Debug)]
pub(crate) enum MailWaitOutcome {
    /// The answer with the mail.
    Found(Box<Response>),
    /// Time is up, the server drains, or the search reached a bound; the cursor to continue from.
    Empty(String),
}

/// Waits for one mail of `scope` that matches.
///
/// # Errors
/// The caller may not read the scope, or no longer; its token has ended; there is no memory to read a mail; Postgres is
/// unavailable.
pub(crate) async fn wait(
    state: &AppState,
    client: Client,
    credential: SubscriberCredential,
    scope: Scope,
    query: Box<MailWaitQuery>,
) -> Result<MailWaitOutcome, ApiError> {
    let answers = AnswerMetrics::start(WaitMode::MailWait, state);
    let mut follower = follow(state, credential, scope, &query);
    follower.schedule(Instant::now() + query.timeout);
    let mut search = Search::new(client, query);
    loop {
        let most = search.page_size(follower.source());
        let batch = match follower.next(state, most).await {
            Followed::Batch(batch) => batch,
            Followed::Due | Followed::Drain => return Ok(MailWaitOutcome::Empty(follower.cursor(state))),
            Followed::Lost(error) => return Err(error),
        };
        // Boxed: a request that waits does not keep the memory that reading needs.
        match Box::pin(search.examine(state, &mut follower, &batch)).await? {
            Examined::Found(FoundMessage { id, response }) => {
                if let Some(timer) = batch.timer {
                    answers.record(state, timer, [id]);
                }
                return Ok(MailWaitOutcome::Found(response));
            }
            Examined::Exhausted => return Ok(MailWaitOutcome::Empty(follower.cursor(state))),
            Examined::Other => {}
        }
    }
}

/// Follows the mail after the start of a query. The newest match is wanted where it has none.
fn follow(
    state: &AppState,
    credential: SubscriberCredential,
    scope: Scope,
    query: &MailWaitQuery,
) -> Follower<ScopeSource> {
    let start = match (query.since, query.after) {
        (Some(since), _) => Start::After(since),
        (None, Some(_)) => Start::After(state.arrivals.generations().oldest()),
        (None, None) => Start::Newest,
    };
    scope::follow(state, credential, scope, start, Patience::Request).accepted_since(query.after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(
        _: fn(&'static AppState, Client, SubscriberCredential, Scope, Box<MailWaitQuery>) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn bounds_the_size_of_an_idle_wait() {
        let size = size_of_future(wait);
        assert!(size <= 1600, "{size}");
    }
}
