//! The wait of `POST /v1/wait`: for one mail that matches, with what the caller may do with it.
//!
//! With a start it is the oldest match after it, so that the same request has the same answer. Without one it is the
//! newest match that there is, or else the first that comes. As for a long-poll, the caller acquires the permits, the
//! subscription begins, the store is read, and only then the request waits.

mod query;
mod search;

use axum::response::Response;
use tempmail_runtime::traces::{Stage, StageTimer};
use tokio::time::Instant;

use super::answer::{AnswerMetrics, Surface};
use super::subscription::Subscription;
use crate::http::client::Client;
use crate::http::error::ApiError;
use crate::state::AppState;
pub(crate) use query::MailWaitQuery;
use search::{FoundMessage, Progress, Search};

/// How a mail wait ends without an error.
#[derive(Debug)]
pub(crate) enum MailWaitOutcome {
    /// The answer with the mail.
    Found(Box<Response>),
    /// Time is up, the server drains, or the search reached a bound; the cursor to continue from.
    Empty(String),
}

/// Waits for one mail that matches.
///
/// # Errors
/// The caller may not read the scope, or no longer; its token has ended; there is no memory to read a mail; Postgres is
/// unavailable.
pub(crate) async fn wait(
    state: &AppState,
    client: Client,
    subscription: Subscription,
    query: Box<MailWaitQuery>,
) -> Result<MailWaitOutcome, ApiError> {
    let answers = AnswerMetrics::start(Surface::MailWait, state);
    let timeout = query.timeout;
    let mut notified_at = None;
    let mut search = Search::new(state, client, subscription, query);
    search.subscription().schedule(Instant::now() + timeout);
    // Boxed: a request that waits does not keep the memory that reading needs.
    let mut progress = Box::pin(search.read(state)).await?;
    while matches!(progress, Progress::Waiting) && !timeout.is_zero() {
        let notified = search.subscription().notified().await;
        notified_at = Some(StageTimer::start(Stage::Answer));
        let (stale, ends) = (state.arrivals.is_stale(), notified.due || notified.drain);
        if stale && ends {
            // Postgres may be silent.
            break;
        }
        let recheck = search.begin_anew(state) || notified.recheck || stale;
        if recheck {
            Box::pin(search.subscription().recheck(state)).await?;
        }
        let recent =
            if recheck { None } else { Box::pin(search.read_recent(state, notified.arrived)).await? };
        progress = match recent {
            Some(progress) => progress,
            None => Box::pin(search.read(state)).await?,
        };
        if ends {
            break;
        }
    }
    let Progress::Found(FoundMessage { id, response }) = progress else {
        return Ok(MailWaitOutcome::Empty(search.cursor(state)));
    };
    if let Some(timer) = notified_at {
        answers.record(state, timer, [id]);
    }
    Ok(MailWaitOutcome::Found(response))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(
        _: fn(&'static AppState, Client, Subscription, Box<MailWaitQuery>) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn bounds_the_size_of_an_idle_wait() {
        let size = size_of_future(wait);
        assert!(size <= 1600, "{size}");
    }
}
