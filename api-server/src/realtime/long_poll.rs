//! The 25 s hold of `/v1/inbox`, `/v1/domain` and `/v1/me`: returns the mail that there is, or waits for
//! new mail. A client may shorten it by `Prefer: wait=N`.
//!
//! To miss no mail, the order is fixed: the caller acquires the permits, the subscription begins, the
//! store is read from the cursor, and only then the request waits.

mod collected;
mod outcome;
mod query;
mod reader;

use tempmail_runtime::traces::{Stage, StageTimer};
use tokio::time::Instant;

pub(crate) use outcome::WaitOutcome;
pub(crate) use query::LongPollQuery;

use super::answer::{AnswerMetrics, Surface};
use super::subscription::Subscription;
use crate::arrivals::{GenerationNumber, Position, STALE_AFTER};
use crate::http::error::{ApiError, code};
use crate::openapi::Operation;
use crate::state::AppState;
use reader::{Progress, Reader};

/// Describes a long-poll: its parameters, and its answers except for the mail.
pub(crate) fn described(operation: Operation) -> Operation {
    query::described(operation)
        .empty(204, "No mail within 25 s, or as long as was preferred: send the request again.")
        .header("X-Next-Since", "The cursor to continue from.")
        .fails(&[code::INVALID_REQUEST, code::TOKEN_BUSY])
}

/// Waits for mail, at most as long as the query says. `since` is the position of the cursor. Returns the outcome, and the generation of its
/// position.
///
/// # Errors
/// The caller may not read the scope, or no longer; its token has ended; Postgres is unavailable.
pub(crate) async fn wait(
    state: &AppState,
    subscription: Subscription,
    query: LongPollQuery,
    since: Option<Position>,
) -> Result<(WaitOutcome, GenerationNumber), ApiError> {
    let answers = AnswerMetrics::start(Surface::LongPoll, state);
    let mut notified_at = None;
    let hold = query.hold;
    let mut reader = Reader::new(state, subscription, query, since);
    reader.subscription().schedule(Instant::now() + hold);
    // Boxed: a waiting long-poll does not keep the memory that reading needs.
    let mut progress = Box::pin(reader.read(state)).await?;
    while progress == Progress::Waiting && !hold.is_zero() {
        let notified = reader.subscription().notified().await;
        notified_at = Some(StageTimer::start(Stage::Answer));
        let (began, stale, ends) =
            (Instant::now(), state.arrivals.is_stale(), notified.due || notified.drain);
        if stale && ends && reader.is_empty() {
            // Without mail there is nothing to judge, and Postgres may be silent.
            break;
        }
        let recheck = reader.begin_anew(state) || notified.recheck || stale;
        if recheck {
            Box::pin(reader.subscription().recheck(state)).await?;
        }
        let recent =
            if recheck { None } else { Box::pin(reader.read_recent(state, notified.arrived)).await? };
        progress = match recent {
            Some(progress) => progress,
            None => Box::pin(reader.read(state)).await?,
        };
        if ends {
            Box::pin(reader.drop_deleted(state)).await?;
        }
        let judged_late = if recheck { began.elapsed() > STALE_AFTER } else { state.arrivals.is_stale() };
        if judged_late && (ends || progress != Progress::Waiting) && !reader.is_empty() {
            // The rights to what would be answered may have ended meanwhile.
            return Err(ApiError::Unavailable);
        }
        if ends {
            break;
        }
    }
    let (outcome, generation) = reader.outcome();
    if let (Some(timer), WaitOutcome::Mail { messages, .. }) = (notified_at, &outcome) {
        answers.record(state, timer, messages.iter().map(|message| message.id));
    }
    Ok((outcome, generation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(
        _: fn(&'static AppState, Subscription, LongPollQuery, Option<Position>) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn bounds_the_size_of_an_idle_wait() {
        let size = size_of_future(wait);
        assert!(size <= 1600, "{size}");
    }
}
